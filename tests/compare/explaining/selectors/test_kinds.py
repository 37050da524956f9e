"""What a head tells apart, read off its scores."""

import numpy as np
from explaining_samples import sample_of

from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.sample import Sample
from rasplens.compare.explaining.selectors.kinds import kinds, told_by
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compile import rasp
from rasplens.learned import load_pretrained
from rasplens.tasks import get_task


def counted(keys, queries, predicate):
    return sample_of(rasp.SelectorWidth(rasp.Select(keys, queries, predicate)).named("n"), vocab="abcd")


def test_keys_that_the_same_queries_select_are_of_one_kind():
    """Vowels from consonants; all queries alike."""
    sample, inputs = counted(rasp.tokens, rasp.tokens, lambda k, q: k == "a")
    found = kinds(Crossed(sample, {}), 0, 0, range(4))
    assert found.selected.shape == (1, 2)
    of_keys = found.keys[0] == found.keys[0][inputs.ids == 0][0]
    np.testing.assert_array_equal(of_keys, inputs.ids == 0)


def test_a_kind_is_told_by_the_fewest_variables():
    sample, inputs = counted(rasp.tokens, rasp.indices, lambda k, q: k == "a" or q == 0)
    crossed = Crossed(sample, {})
    found = kinds(crossed, 0, 0, range(4))
    key, query = (
        told_by(inputs, inputs.primitives(), crossed, of, name)
        for of, name in ((found.keys, "key"), (found.queries, "query"))
    )
    assert [one.name for one in key.read] == ["rasp.tokens"]
    assert [one.name for one in query.read] == ["rasp.indices"]
    known = key.known
    np.testing.assert_array_equal(np.array(known.values, dtype=object)[known.codes], found.keys[0])
    of_a = key.kinds["a",]
    assert {values for values, kind in key.kinds.items() if kind == of_a} == {("a",)}
    assert {*key.kinds} == {(token,) for token in inputs.task.vocab}


def test_a_kind_that_no_variables_tell_is_none():
    sample, inputs = counted(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    crossed = Crossed(sample, {})
    noise = np.random.default_rng(0).integers(0, 2, (2, *inputs.ids.shape))
    assert told_by(inputs, inputs.primitives(), crossed, noise, "noise") is None


def test_without_a_start_token_there_are_no_kinds():
    task = get_task("induction")
    sample = Sample(as_studied_model(load_pretrained("induction"), task, task.held_out[:10]), [])
    assert kinds(Crossed(sample, {}), 0, 0, range(4)) is None


def test_a_kind_is_told_by_what_the_model_reads_and_not_by_what_goes_with_it():
    """How many positions lie before a token's number follows from the token; the second head reads the count."""
    before = "rasp.SelectorWidth(rasp.Select(rasp.indices, rasp.tokens, lambda k, q: k < q))"
    w = eval(before).named("w")
    count = rasp.SelectorWidth(rasp.Select(w, w, lambda k, q: k > 1)).named("count")
    sample, inputs = sample_of(count, vocab=(0, 1, 2, 3))
    first, second = sorted(sample.studied.heads)
    known = [*inputs.primitives(), inputs.define("w", before, inputs.primitives()[:1], 2.0)]
    read = {}
    for name, made in (("as it is", {}), ("crossed", {(first[0], (first[1],)): ["w"]})):
        crossed = Crossed(sample, made)
        keys = kinds(crossed, *second, range(4)).keys
        read[name] = [one.name for one in told_by(inputs, known, crossed, keys, "key").read]
    assert read == {"as it is": ["rasp.tokens"], "crossed": ["w"]}
