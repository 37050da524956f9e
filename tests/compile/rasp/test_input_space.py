import pytest

from rasplens.compile.rasp.input_space import input_space


def test_sequences_are_enumerated_the_shortest_first():
    space = input_space(["a", "b"], 2)
    assert list(space) == [("a",), ("b",), ("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    assert space.size == 6


def test_ids_are_places_in_the_vocabulary_by_type():
    space = input_space([1, True, "1"], 3)
    assert space.ids([True, "1", 1]) == [1, 2, 0]


def test_sets_are_put_in_order():
    assert input_space({"b", "a", "c"}, 1).vocab == ("a", "b", "c")
    assert input_space(frozenset({2, "a", 1}), 1).vocab == (1, 2, "a")
    assert input_space({(1, None), (None, 1), ("a",), (2,), (1.5,)}, 1).vocab == (
        (None, 1), (1, None), (1.5,), (2,), ("a",),
    )  # fmt: skip


def test_a_domain_holds_its_own_sequences_alone():
    space = input_space("ab", 3).within(["ba", "a", "bbb", "ba", "ab"])
    assert ["".join(tokens) for tokens in space] == ["a", "ab", "ba", "bbb"]
    assert space.size == 4
    assert space.lengths == {1, 2, 3}
    assert [ids.tolist() for ids in space.all_ids()] == [[[0]], [[0, 1], [1, 0]], [[1, 1, 1]]]
    drawn = [tuple(row) for ids in space.sampled_ids(200, seed=0) for row in ids.tolist()]
    assert len(drawn) == 200
    assert set(drawn) == {(0,), (0, 1), (1, 0), (1, 1, 1)}
    assert drawn == sorted(drawn, key=len)
    assert space.ids("ab") == [0, 1]
    assert space.holds([1, 0])
    assert not space.holds([1, 1])
    with pytest.raises(ValueError, match=r"\['b', 'b'\].* 4 sequences"):
        space.ids("bb")
    with pytest.raises(ValueError, match=r"`domain`.*sequence"):
        input_space("ab", 3).within([])


@pytest.mark.parametrize(
    ("vocab", "max_len", "message"),
    [
        (["a"], 0, "max_len.*1.*0"),
        ([], 1, "vocab.*one token"),
        (["a", "\ud800"], 1, r"surrogate.*'\\ud800'"),
        ([("a", "b\udfff")], 1, "surrogate.*udfff"),
        (5, 1, "vocab.*int 5"),
        (["a"], "3", "max_len.*whole number.*str '3'"),
        (["a", None], 1, "None.*token"),
        (["a", "b", "a"], 1, "vocab.*'a'.*twice"),
    ],
)
def test_impossible_spaces_are_refused(vocab, max_len, message):
    with pytest.raises(ValueError, match=message):
        input_space(vocab, max_len)


def test_sequences_that_do_not_fit_are_refused():
    space = input_space(list("abcdefghij"), 2)
    with pytest.raises(ValueError, match=r"3 tokens.*max_len=2"):
        space.ids("abc")
    with pytest.raises(ValueError, match="0 tokens"):
        space.ids("")
    with pytest.raises(ValueError, match=r"'z' at position 1.*\('a', .*, 'h', …\)"):
        space.ids("az")
    with pytest.raises(ValueError, match=" 1 at position 0"):
        input_space([True], 1).ids([1])
