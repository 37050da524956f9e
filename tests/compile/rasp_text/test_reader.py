"""The RASP language as text: what it means, and what is said of mistakes."""

import itertools
import re

import pytest

from rasplens.compile import CompileError, RaspTextError, compile_program, parse_rasp, read_rasp, verify
from rasplens.errors import RaspLensError


def value_of(expression, tokens="ab"):
    return parse_rasp(f"result = {expression} + 0 * indices;").output()(list(tokens))[0]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("2 ^ 3 ^ 2", 64),  # from the left
        ("-2 ^ 2", 4),  # the sign binds tighter
        ("7 % 4 * 2", 7),  # a remainder binds less than a product
        ("10 / 4", 2.5),
        ("round(2.6)", 3),
        ("len([1, 2, 3])", 3),
        ("[4, 5, 6][-1]", 6),
        ('{"x": 3, "y": 4}["y"]', 4),
        ("[x * x for x in range(4)][3]", 9),
        ("{k: k + 1 for k in [5]}[5]", 6),
        ("[a - b for a, b in zip([5, 6], [1, 1])][1]", 5),
        ("(1 if 2 > 1 else 5)", 1),
        ("(1 if not 1 == 1 else 5)", 5),
        ("(1 if 3 in [1, 2] else 5)", 5),
        ("(1 if True or False and False else 5)", 5),  # one level, from the left: (True or False) and False
        ('[x for x in ["ab", "cd"] for_]', None),
    ],
)  # fmt: skip
def test_constants_are_computed_as_the_language_says(expression, value):
    if value is None:
        with pytest.raises(RaspTextError):
            value_of(expression)
    else:
        assert value_of(expression) == value


def output(text, tokens, name=None):
    return parse_rasp(text).output(name)(list(tokens))


@pytest.mark.parametrize(
    ("text", "tokens", "values"),
    [
        ('x = indicator(tokens == "a");', "aba", [1, 0, 1]),
        ("x = aggregate(select(indices, indices, >), indices);", "abc", [1.5, 2, 0]),  # nothing selected: 0
        ("x = aggregate(select(indices, indices, >), tokens, 7);", "ab", ["b", 7]),
        ('x = {"a": 10, "b": 20}[tokens];', "ba", [20, 10]),
        ("x = [5, 6, 7][indices];", "bab", [5, 6, 7]),
        ("x = tokens[-1];", "abc", ["c", "c", "c"]),
        ("x = tokens[0];", "abc", ["a", "a", "a"]),
        ('x = tokens in ["a", "c"];', "abc", [True, False, True]),
        ('x = "yes" if tokens == "a" else tokens;', "ab", ["yes", "b"]),
        ("s = not select(indices, indices, ==); x = selector_width(s);", "abc", [2, 2, 2]),
        ("s = select(indices, 0, ==) or select(indices, 1, ==); x = selector_width(s);", "abc", [2, 2, 2]),
        ("x = length - indices;", "abc", [3, 2, 1]),
        ("x = tokens_int + 1;", "12", [2, 3]),
        ("x = -indices ^ 2;", "abc", [0, 1, 4]),
        ("x = indices % 2 == 1;", "abc", [False, True, False]),
        ("def f(a) { b = a + 1; return b, a; } y, x = f(indices);", "ab", [0, 1]),
        ("x = indices; for i in [1, 2] { x = x + i; }", "ab", [3, 4]),
        ("def outer(n) { def inner(m) { return m + n; } return inner(1); } x = outer(indices);", "ab", [1, 2]),
        ("x = shift(tokens, 1, \"-\");", "abc", ["-", "a", "b"]),
        ("x = shift(tokens, -1, \"-\");", "abc", ["b", "c", "-"]),
        ("x = reverse(tokens);", "abc", ["c", "b", "a"]),
        ("x = sort(tokens, tokens);", "cab", ["a", "b", "c"]),
        ('x = count(tokens, "a");', "aba", [2, 2, 2]),
        ('x = contains(tokens, "c");', "ab", [False, False]),
        ('x = mark_first_instance(tokens, "a");', "baa", [False, True, False]),
        ('x = mark_last_instance(tokens, "a");', "baa", [False, False, True]),
        ("x = max(indices, 1);", "abc", [1, 1, 2]),
        ('x = aggregate(select_from_last(tokens, "a"), indices);', "aab", [1, 1, 1]),
        ("x = selector_width(select_next_identical(tokens));", "aba", [1, 0, 0]),
        ("x = average(indices);  # a comment", "abc", [1, 1, 1]),
        ('set example "hello" x = indices; draw(x, "ab"); show s-op example examples off', "ab", [0, 1]),
    ],
)  # fmt: skip
def test_programs_mean_what_the_language_says(text, tokens, values):
    assert output(text, tokens, "x") == values


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("x = 1 +;", "1:8", "';'.*expected"),
        ("x = tokens\ny = 2;", "2:1", "expected ';'"),
        ("x = nothing;", "1:5", "no name 'nothing'"),
        ("x = aggregate(selec(indices, (0), ==), tokens);", "1:35", "no function 'selec'.*'select'"),
        ("x = select(==);", "1:12", "expected"),
        ("x = lenght;", "1:5", "'lenght'.*'length'"),
        ("x = 1 if 1 == 1 else 2 if 2 == 1 else 3;", "1:24", "parentheses"),
        ('x = "abc', "1:5", "string.*quotation mark"),
        ("x = aggregate(tokens, 1);", "1:5", "selector.*got an s-op"),
        ("x = select(tokens, tokens, ==) + 1;", "1:5", "not on a selector"),
        ("x = select(tokens, tokens, ==) and tokens;", "1:5", "'and'.*selectors.*s-ops"),
        ("a, b = 1;", "1:1", "2 names.*a, b"),
        ("for i in 3 { x = i; }", "1:10", "loop.*3"),
        ("x = [1, 2][5];", "1:5", "no item 5"),
        ('x = {"a": 1}["b"];', "1:5", "no key 'b'"),
        ("def f(a) { return a; }\nx = f(1, 2);", "2:5", "'f'.* 1 arg.* 2"),
        ("x = 3(1);", "1:5", "3 is.*function"),
        ("x = 1 / 0;", "1:5", "division by zero"),
        ("x = range(1000000);", "1:5", "10,000 items"),
        ('load "nowhere";', "1:1", r"no file nowhere\.rasp"),
        ("def f(a) { return f(a); } x = f(1);", "1:", ""),
        ("x = $;", "1:5", r"'\$'.*expected"),
        ("if = 3;", "1:1", "'if'.*expected"),
    ],
)
def test_mistakes_are_shown_where_they_are(text, place, said):
    with pytest.raises(RaspLensError) as error:
        parse_rasp(text, "mine.rasp")
    message = str(error.value)
    assert message.startswith(f"mine.rasp:{place}") or "nested" in message
    assert re.search(said, message)
    if isinstance(error.value, RaspTextError):
        line, caret = message.splitlines()[-2:]
        assert line.strip() in text
        assert caret.strip() == "^"


def test_deep_nesting_is_refused():
    with pytest.raises(RaspLensError, match="nested"):
        parse_rasp(f"x = {'(' * 3_000}1{')' * 3_000} + {'-' * 5_000}1;")


def test_names_with_an_underscore_stay_in_their_file(tmp_path):
    (tmp_path / "lib.rasp").write_text("_hidden = indices; shown = _hidden + 1;")
    (tmp_path / "main.rasp").write_text('load "lib"; x = shown * 2;')
    assert read_rasp(tmp_path / "main.rasp").output()(list("ab")) == [2, 4]
    (tmp_path / "main.rasp").write_text('load "lib"; x = _hidden;')
    with pytest.raises(RaspTextError, match="no name '_hidden'"):
        read_rasp(tmp_path / "main.rasp")
    (tmp_path / "lib.rasp").write_text('load "main";')
    with pytest.raises(RaspTextError, match=r"'main'.*itself"):
        read_rasp(tmp_path / "main.rasp")


def test_an_output_goes_by_name_and_is_the_last_one_otherwise():
    found = parse_rasp("a = indices + 1; b = a; s = select(a, b, ==); a = b + 1;")
    assert list(found.sops) == ["b", "a"]
    assert list(found.selectors) == ["s"]
    assert found.output().name == "a"
    assert found.output("b").name == "b"
    with pytest.raises(RaspLensError, match=r"'c'.* b, a"):
        found.output("c")
    with pytest.raises(RaspLensError, match="no s-op"):
        parse_rasp("x = 3;").output()


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(RaspLensError, match=r"no file .*none\.rasp"):
        read_rasp(tmp_path / "none.rasp")
    (tmp_path / "binary.rasp").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RaspLensError, match=r"binary\.rasp.*UnicodeDecodeError"):
        read_rasp(tmp_path / "binary.rasp")


def test_a_compiled_text_is_verified():
    program = parse_rasp('x = count(tokens, "a") > 1 and tokens == "b";').output()
    assert verify(compile_program(program, "ab", 4)).ok


def test_what_is_undefined_is_refused():
    with pytest.raises(CompileError):
        compile_program(parse_rasp("x = aggregate(full_s, tokens);").output(), "ab", 2)


def sequences(vocab, longest):
    return [list(tokens) for n in range(1, longest + 1) for tokens in itertools.product(vocab, repeat=n)]


def brackets(pairs):
    closing = {pair[0]: pair[1] for pair in pairs}

    def states(tokens):
        stack, is_wrong, found = [], False, []
        for token in tokens:
            if token in closing:
                stack.append(closing[token])
            else:
                is_wrong |= not stack or stack.pop() != token
            found.append("F" if is_wrong else "P" if stack else "T")
        return found

    return states


def by_frequency(tokens):
    found = sorted(dict.fromkeys(tokens), key=lambda token: (-tokens.count(token), tokens.index(token)))
    return found + ["-"] * (len(tokens) - len(found))


def added(tokens):
    (first, second), n = "".join(tokens).split("+"), len(tokens) // 2
    return [int(digit) for digit in f"{int(first) + int(second):0{n}d}"[-n:]]


PAPER = [
    ("histogram", "hist", lambda s: [s.count(t) for t in s], "abc", sequences("abc", 4), 0),
    ("histogram", "hist_bos", lambda s: [s.count(t) for t in s[1:]], "§abc",
     [["§", *s] for s in sequences("abc", 3)], 1),
    ("reverse", "backwards", lambda s: s[::-1], "abc", sequences("abc", 4), 0),
    ("sort", "in_order", sorted, "abc", sequences("abc", 4), 0),
    ("double_histogram", "hist2", lambda s: [sum(s.count(t) == s.count(u) for u in set(s)) for t in s], "abc",
     sequences("abc", 4), 0),
    ("sort_by_frequency", "by_frequency", by_frequency, "abc", sequences("abc", 4), 0),
    ("dyck", "dyck1", brackets(["()"]), "()", sequences("()", 5), 0),
    ("dyck", "dyck2", brackets(["()", "{}"]), "(){}", sequences("(){}", 4), 0),
    ("dyck", "dyck3", brackets(["()", "{}", "[]"]), "(){}[]", sequences("(){}[]", 3), 0),
    ("long_addition", "sum", added, "0123456789+",
     [list(f"{a:02d}+{b:02d}") for a in range(0, 100, 7) for b in range(0, 100, 3)], 3),
]  # fmt: skip
"""The results of Weiss et al. 2021 and long addition: file, name, what it means, tokens, inputs, first answer."""


@pytest.mark.parametrize(("file", "name", "meaning", "vocab", "inputs", "first"), PAPER, ids=[p[1] for p in PAPER])
def test_the_papers_programs_compile_and_are_right(file, name, meaning, vocab, inputs, first, request):
    program = read_rasp(request.config.rootpath / "examples" / "rasp" / f"{file}.rasp").output(name)
    assert [program(tokens)[first:] for tokens in inputs] == [meaning(tokens) for tokens in inputs]
    compiled = compile_program(program, vocab, max(map(len, inputs)), domain=inputs)
    check = verify(compiled, inputs=inputs)
    assert check.ok
    assert check.undefined == 0
