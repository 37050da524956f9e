"""The language follows the original's grammar and evaluator, or refuses with a reason."""

import re

import pytest

from rasplens.compile import RaspTextError, compile_program, parse_rasp, program_text, read_rasp, verify


def output(text, tokens="abc", name="x"):
    return parse_rasp(text).output(name)(list(tokens))


@pytest.mark.parametrize(
    ("text", "tokens", "values"),
    [
        ("x = indices or 5;", "abc", [True, True, True]),
        ("x = 0 or indices;", "abc", [False, True, True]),
        ("x = indices and 5;", "abc", [False, True, True]),
        ('x = tokens and "";', "ab", [False, False]),
        ("x = (indices > 0) and indices;", "abc", [False, True, True]),
        ("x = not indices;", "abc", [True, False, False]),
        ("x = (3 and 5) + (0 or 2) + indices;", "ab", [7, 8]),  # constants: the side that decides
        ("x = tokens_bool;", ["1", "0", "False", "True", ""], [True, True, True, True, False]),
        ("x = tokens_bool;", [1, 0, False], [True, False, False]),
        ("x = tokens_str;", [1, "a", True], ["1", "a", "True"]),
        ("x = tokens_asis;", [1, "a", True], [1, "a", True]),
        ('x = "b" in tokens;', "abc", [True, True, True]),
        ('x = "z" in tokens;', "abc", [False, False, False]),
        ("x = count(tokens, tokens);", "aba", [3, 3, 3]),  # each token equals itself, wherever it stands
        ("x = contains(tokens_int, indices);", "20", [False, False]),
        ('x = shift(tokens, indices, "-");', "abcde", ["a", "-", "b", "-", "c"]),  # by the key's
        ("x = 0 < indices < 1;", "abc", [True, False, False]),  # (0 < indices) < 1
        ("x = 2 ^ indices;", "abc", [1, 2, 4]),
        ("x = 7 % (indices + 1);", "abc", [0, 1, 1]),
        ("x = indices[True];", "abc", [1, 1, 1]),
        ("y = range(True); x = len(y) + indices;", "ab", [1, 2]),
    ],
)  # fmt: skip
def test_values_are_those_of_the_original(text, tokens, values):
    found = output(text, tokens)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    "text",
    [
        "full = indices; x = full;",
        "full seq display on\nx = indices;",
        "s-op examples off\nx = indices;",
        "selector examples on x = indices;",
        "s = indices; op = 0; x = s-op;",
        'set s-op example "abc" x = indices; show selector example',
        "x = indices; exit() $$$ what follows is not read",
        "x = indices;\nquit",
        "exitcode = indices; x = exitcode;",
        "exit = indices; x = exit;",
        "\ufeffx = indices;",
        'x = indices; x("abc"); full_s([1, 2]); draw(x); draw(x, "abc");',
        "def f(max) { count = max; return count; } x = f(indices);",
        "y = [max for max in [1, 2]]; x = indices;",
        "def reverse(s) { return s; } x = reverse(indices);",
        "tokens = indices; x = tokens;",
    ],
)
def test_texts_of_the_original_are_read(text):
    assert output(text) == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("length = 3;", "1:1", "'length' is built in"),
        ("x = 1; for count in [1] { x = 2; }", "1:8", "'count' is built in"),
        ("a, max = 1, 2;", "1:1", "'max' is built in"),
        ("def sort(a) { return a; }", "1:1", "'sort' is built in"),
        ("def f(indices) { return 1; }", "1:1", "'indices' is built in"),
        ("def f(a) { range = a; return a; } x = f(1);", "1:12", "'range' is built in"),
        ("out = 1;", "1:1", "'out' is built in"),
        ("x = out;", "1:5", "`out`"),
        ("x = tokens in tokens;", "1:5", "`in`.*constant.*got an s-op"),
        ("x = 1 in full_s;", "1:5", "`in`.*s-op.*list.*dict.*string"),
        ("x = full_s in [1];", "1:5", "not on a selector"),
        ("x = zip([1, 2], [3]);", "1:5", "zip.*length.* 2, 1"),
        ("x = zip();", "1:5", "zip.*lists.*none"),
        ("x = [1] + indices;", "1:5", r"\'\+\'.*s-ops.*a list"),
        ('x = "%d" % 3;', "1:5", "'%'.*string"),
        ("x = (-8) ^ 0.5;", "1:5", "-8.* 0.5.*real number"),
        ("x = 10.0 ^ 400;", "1:5", "10.0.* 400.*float"),
        ("x = indices(3);", "1:5", "s-op.*input.*statement"),
        ("indices(3);", "1:1", "input.*string or list.*3"),
        ("indices();", "1:1", "input.*string or list.*none"),
        ("set example 5", "1:1", "input.*string or list.*5"),
        ("draw(full_s);", "1:1", "draw.*s-op.*a selector"),
        ("draw(nothing);", "1:6", "no name 'nothing'"),
        ("x = {indices: 1};", "1:6", "key.*an s-op"),
        ("def f(a) { return a; } x = f[1];", "1:28", "a function.*indexed"),
        ("x = aggregate(full_s, 1, [1]);", "1:5", "default of aggregate.*constant.*a list"),
        ("x = len(3);", "1:5", "len.*list.*dict.*string.*3"),
        ('x = range("a");', "1:5", "range.*whole numbers.*'a'"),
        ("return 3;", "1:1", "'exit'"),
        ("return 3;", "1:1", "'full seq display'"),
    ],
)  # fmt: skip
def test_what_is_refused_is_refused_with_a_reason(text, place, said):
    with pytest.raises(RaspTextError) as error:
        parse_rasp(text, "mine.rasp")
    message = str(error.value)
    assert message.startswith(f"mine.rasp:{place}: ")
    assert re.search(said, message)


def test_a_file_that_is_loaded_ends_at_its_exit(tmp_path):
    (tmp_path / "lib.rasp").write_bytes("\ufeffa = indices; exit a = 3 +".encode())
    (tmp_path / "main.rasp").write_text('load "lib"; x = a + 1;')
    assert read_rasp(tmp_path / "main.rasp").output()(list("ab")) == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "x = indices or 5;",
        'x = "a" in tokens;',
        "x = not (tokens_bool and indices) or indices % 2;",
        "x = count(tokens, tokens) - 2 ^ indices;",
        'x = shift(tokens, indices, "-");',
    ],
)
def test_they_compile_to_what_they_say(text):
    check = verify(compile_program(parse_rasp(text).output(), "ab", 4))
    assert check.ok
    assert check.undefined == 0


def test_operators_are_shown_as_they_are_written():
    text = program_text(parse_rasp("x = (indices ^ 2 + 1) % 3 > 1 and tokens;").output())
    assert text == "x = ((((indices ** 2) + 1) % 3) > 1) and tokens"
