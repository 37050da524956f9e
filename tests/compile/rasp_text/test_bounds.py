"""What would take too long, or too much memory, is refused where it stands."""

import re

import pytest

from rasplens.compile import RaspTextError, UndefinedValue, parse_rasp, read_rasp
from rasplens.compile.rasp_text.bounds import LONGEST_TEXT, MOST_BITS, MOST_ITEMS, MOST_STEPS, StepBudget
from rasplens.errors import RaspLensError

DOUBLING = "def f0(a) { return a; } " + "".join(
    f"def f{i}(a) {{ return f{i - 1}(a) + f{i - 1}(a); }}" for i in range(1, 40)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [0] * 1000000000000;", "10,000 items"),
        ('x = 3000000000 * "a";', "10,000 items"),
        ("x = range(9 ^ 300);", "10,000 items"),
        ("x = range(0, 9 ^ 300, 7);", "10,000 items"),
        ("x = [1]; for i in range(99) { x = x + x; }", "10,000 items"),
        ('x = "a"; for i in range(99) { x = x + x; }', "10,000 items"),
        ("x = 9999999 ^ 9999999;", "1,024 bits"),
        ("x = ((9 ^ 9) ^ 9) ^ 9;", "1,024 bits"),
        ("x = 2; for i in range(99) { x = x * x; }", "1,024 bits"),
        (f"x = {'9' * 600};", "1,024 bits"),
        (f"x = {'9' * 5_000};", "1,024 bits"),
        (f"x = {'9' * 400}.0;", "any float"),
        ("for i in range(9999) { for j in range(9999) { x = i; } }", "200,000 steps"),
        ("x = [[i for i in range(999)] for j in range(999)];", "200,000 steps"),
        ("x = [range(9999) for j in range(999)];", "200,000 steps"),
        ("x = [1]; y = [1]; for i in range(99) { x = [x, x]; y = [y, y]; } z = x == y;", "200,000 steps"),
        ("x = [1]; for i in range(99) { x = [x, x]; } z = 1 in x;", "200,000 steps"),
        (f"{DOUBLING} x = f39(1);", "200,000 steps"),
        ("def f(a) { return g(a); } def g(a) { return f(a); } x = f(1);", "'[fg]'.*depth 100"),
        (f"x = {'[' * 3_000}1{']' * 3_000};", "nested"),
        (f"x = {'not ' * 3_000}1;", "nested"),
        (f"x = {' + '.join('1' * 3_000)};", "nested"),
        (f"def f(a) {{ return a; }} x = {'f(' * 3_000}1{')' * 3_000};", "nested"),
        (f"x = {'a' * 100_000};", "no name 'aaa"),
        (f"x = {' ' * LONGEST_TEXT}1;", "200,006.*200,000"),
    ],
)  # fmt: skip
def test_a_text_cannot_ask_for_more_than_there_is(text, said):
    with pytest.raises(RaspTextError, match=r"^mine\.rasp:1:") as error:
        parse_rasp(text, "mine.rasp")
    assert re.search(said, str(error.value))
    assert len(str(error.value)) < 1_200
    assert len(str(error.value).splitlines()) == 3


def test_what_is_just_small_enough_is_computed():
    text = f"""
    x = [0] * {MOST_ITEMS}; y = range({MOST_ITEMS}); z = 2 ^ {MOST_BITS - 1}; w = 10 ^ 308; e = range(20000, 0);
    for i in range(1000) {{ a = indices + i; }}
    """
    assert parse_rasp(text).output()(["b"]) == [999]


def test_the_parts_of_an_input_are_bounded_too():
    doubled = parse_rasp("x = tokens; for i in range(60) { x = x + x; }").output()
    with pytest.raises(UndefinedValue, match="10,000 items"):
        doubled(["a"])
    assert parse_rasp("x = tokens * 3;").output()(["a"]) == ["aaa"]
    with pytest.raises(UndefinedValue, match="10,000 items"):
        parse_rasp("x = tokens * 1000000000000;").output()(["a"])


@pytest.mark.slow
def test_the_steps_of_files_that_are_loaded_count(tmp_path):
    (tmp_path / "f0.rasp").write_text("x = indices;")
    for i in range(1, 20):
        (tmp_path / f"f{i}.rasp").write_text(f'load "f{i - 1}"; ' * 20)
    with pytest.raises(RaspTextError, match="200,000 steps"):
        read_rasp(tmp_path / "f19.rasp")


def test_files_that_are_no_texts(tmp_path):
    (tmp_path / "large.rasp").write_text(" " * (LONGEST_TEXT + 1))
    with pytest.raises(RaspLensError, match=r"200,001.*200,000"):
        read_rasp(tmp_path / "large.rasp")
    with pytest.raises(RaspLensError, match="no file"):
        read_rasp(tmp_path)


def test_steps_run_out():
    steps = StepBudget()
    steps.take(MOST_STEPS)
    with pytest.raises(RaspLensError, match="200,000 steps"):
        steps.take_through({"a": [1]})
