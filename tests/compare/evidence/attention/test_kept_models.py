"""The models that a comparison keeps: the same attention from its file, or none."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.attention.kept_models import KeptModels, kept_models, live_models
from rasplens.errors import RaspLensError
from rasplens.model import HookedModel


def test_what_is_kept_attends_as_the_models_do_on_any_input(floor):
    kept, live = KeptModels.from_dict(json.loads(json.dumps(floor.models.to_dict()))), live_models(floor.pairing)
    rng = np.random.default_rng(0)
    ids = np.concatenate([floor.pairing.ids[:5], rng.permuted(floor.pairing.ids[5:10], axis=1)])
    heads = {"compiled": list(floor.pairing.compiled.heads), "learned": list(floor.pairing.learned.heads)}
    for side, some in heads.items():
        assert some
        for head in some:
            np.testing.assert_allclose(kept.pattern(side, ids, head), live.pattern(side, ids, head), atol=1e-5)
    assert kept.variables == floor.pairing.compiled.heads


def test_a_loaded_comparison_has_them(floor, tmp_path):
    floor.save(tmp_path / "c.json")
    models = Comparison.load(tmp_path / "c.json").models
    assert models.to_dict() == floor.models.to_dict()


@pytest.mark.parametrize(
    "changed",
    [
        lambda pairing: replace(pairing, learned=replace(pairing.learned, model=object())),
        lambda pairing: replace(pairing, learned=replace(pairing.learned, padding="masked")),
        lambda pairing: replace(pairing, task=replace(pairing.task, vocab=("1", 1, *pairing.task.vocab[2:]))),
        lambda pairing: replace(pairing, learned=replace(pairing.learned, vocabulary=turned(pairing.learned))),
    ],
    ids=[
        "another module",
        "masked padding",
        "two tokens written alike",
        "reads backwards",
    ],
)
def test_what_the_page_could_not_run_as_it_is_is_not_kept(floor, changed):
    assert kept_models(floor.pairing) is not None
    assert kept_models(changed(floor.pairing)) is None


def turned(studied):
    """A vocabulary that takes inputs from their end."""
    vocabulary = studied.vocabulary
    return replace(vocabulary, tokens=lambda ids: vocabulary.tokens(ids)[:, ::-1].copy())


def test_larger_models_than_the_config_has_it_are_not_kept(floor):
    sizes = [one.transformer.n_params for one in (floor.models.compiled, floor.models.learned)]
    for most, are_kept in ((max(sizes), True), (max(sizes) - 1, False), (0, False)):
        config = replace(floor.pairing.config, most_kept_weights=most)
        assert (kept_models(replace(floor.pairing, config=config)) is not None) == are_kept


def test_a_model_with_hooks_of_its_own_is_more_than_its_weights(floor):
    hooked = HookedModel(floor.models.learned.transformer)
    hooked.add_perma_hook("blocks.0.attn.hook_pattern", lambda value, hook: value * 0 + 0.1)
    assert kept_models(replace(floor.pairing, learned=replace(floor.pairing.learned, model=hooked))) is None


def test_tokens_that_are_written_alike_are_not_guessed(floor):
    n = len(floor.models.positions)
    twice = replace(floor.models, tokens=("a", "a", *floor.models.tokens[2:]))
    with pytest.raises(RaspLensError, match="Several"):
        twice.ids(["a"] * n)


@pytest.mark.parametrize(("token", "between"), [(",", " "), ("New York", ","), ("New York", " , ")])
def test_what_stands_in_a_token_does_not_stand_between_tokens(floor, token, between):
    models = replace(floor.models, tokens=(token, *floor.models.tokens[1:]))
    assert models.separators == (between.strip() or " ")
    assert (models.ids(between.join([token] * len(models.positions))) == 0).all()


def test_tokens_with_spaces_and_commas_are_given_one_by_one(floor):
    n, pairs = len(floor.models.positions), replace(floor.models, tokens=("(1, 2)", *floor.models.tokens[1:]))
    assert pairs.separators == ""
    assert (pairs.ids([(1, 2)] * n) == 0).all()
    with pytest.raises(RaspLensError, match="sequence of tokens"):
        pairs.ids("(1, 2)")


def test_text_of_another_length_says_what_stands_between_tokens(floor):
    with pytest.raises(RaspLensError, match=r"got 1\. Put spaces or commas between them"):
        floor.models.ids("ABCABCABC")
