"""Padding of a language model: what its config names is hidden, and positions skip it."""

import warnings

import numpy as np
import pytest
import torch
import transformers
from transformer_lens.model_bridge.sources import build_bridge_from_module

from rasplens.compare import as_studied_model, study_of, token_vocabulary
from rasplens.compare.subject.padding import check_left_out
from rasplens.compile.rasp import Aggregate, Select, indices, tokens
from rasplens.errors import RaspLensError
from rasplens.model import Config, Transformer, causal_mask, weight_shapes
from rasplens.tasks import build_task, compile_for

PAD, WIDE = 1, 20


def filled_up(name, place):
    """The letter at a place of inputs that are filled up on the left."""
    return build_task(
        name, "BOS {x:2-5} SEP", tokens="abcde", answers=lambda t: t[place], read="SEP", pad="left", causal=True
    )


@pytest.fixture(scope="module")
def left():
    """The place of the first letter hangs on how positions are counted."""
    return filled_up("first", 1)


@pytest.fixture(scope="module")
def last():
    """The last letter always stands at the same of all places, and not at the same of an input's own."""
    return filled_up("last", -2)


def ids_of(task, padding=PAD):
    return {"PAD": padding, **{token: 3 + i for i, token in enumerate(t for t in task.vocab if t != "PAD")}}


def gpt2(task, pad_token_id=PAD):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=1,
        n_head=2,
        n_embd=32,
        vocab_size=WIDE,
        n_positions=task.n_ctx,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=pad_token_id,
        attn_implementation="eager",
    )
    return transformers.GPT2LMHeadModel(config).eval()


def trained(task, way):
    """A small GPT-2 that learned the task with padding in one of the ways."""
    model, rng = gpt2(task), np.random.default_rng(0)
    vocabulary = token_vocabulary(task, ids_of(task))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(120):
        ids = task.sample(rng, 64)
        inputs = torch.as_tensor(vocabulary.tokens(ids))
        seen = (inputs != PAD).long()
        beside = {
            "token": {},
            "masked": {"attention_mask": seen},
            "left out": {"attention_mask": seen, "position_ids": (seen.cumsum(1) - 1).clamp_min(0)},
        }[way]
        logits = model(inputs, **beside).logits[:, list(task.loss_positions)]
        target, asked = task.target(ids), torch.as_tensor(task.is_asked(ids))
        wanted = torch.as_tensor(vocabulary.columns[np.where(task.is_asked(ids), target, 0)])
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits[asked], wanted[asked]).backward()
        optimiser.step()
    return bridged(model)


def bridged(model):
    return build_bridge_from_module(model, "GPT2LMHeadModel", hf_config=model.config)


@pytest.fixture(scope="module")
def skipping(left):
    return trained(left, "left out")


def right(model, task, **options):
    vocabulary = token_vocabulary(task, ids_of(task), **options)
    return as_studied_model(model, task, task.held_out[:200], vocabulary).right().mean()


def test_padding_that_a_config_names_is_left_out(skipping, left):
    assert right(skipping, left) > 0.95
    assert right(skipping, left, padding="left out") > 0.95
    assert right(skipping, left, padding="token") < 0.8  # the control: what was read before


def test_activations_are_read_behind_the_same_mask(skipping, left):
    studied = as_studied_model(skipping, left, left.held_out[:50], token_vocabulary(left, ids_of(left)))
    is_padding = studied.seen.numpy() == 0
    assert is_padding.any()
    pattern = studied.whole_pattern(0)
    own = np.where(~is_padding[:, None, :, None], pattern, 0)  # what positions that are no padding look at
    assert np.abs(own[np.broadcast_to(is_padding[:, None, None, :], own.shape)]).max() < 1e-6
    unedited = studied.logits([("blocks.0.attn.hook_pattern", lambda value, hook: value)])
    np.testing.assert_allclose(unedited, studied.clean_logits, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["token", "masked"])
def test_a_model_that_learned_otherwise_is_warned_about(last, way):
    model = trained(last, way)
    with pytest.warns(UserWarning, match=r'0\.\d+ .*padding left out.* [01]\.\d+ .*padding="(token|masked)"'):
        right(model, last)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert right(model, last, padding=way) > 0.95


def test_padding_that_no_config_names_is_a_token(left):
    model = bridged(gpt2(left, pad_token_id=None))
    vocabulary = token_vocabulary(left, ids_of(left))
    assert as_studied_model(model, left, left.held_out[:4], vocabulary).padding == "token"
    other = token_vocabulary(left, ids_of(left, padding=0))
    assert as_studied_model(bridged(gpt2(left)), left, left.held_out[:4], other).padding == "token"


@pytest.mark.slow
def test_a_comparison_masks_all_its_sides(skipping, left, brief):
    before = Select(indices, indices, lambda key, query: key == query - 1)
    behind_bos = Select(Aggregate(before, tokens, default=None), tokens, lambda key, query: key == "BOS")
    compiled = compile_for(left, Aggregate(behind_bos, tokens, default=None))
    study = study_of(compiled, skipping, left, brief, seed=0, vocabulary=token_vocabulary(left, ids_of(left)))
    assert study.learned.padding == study.scored.untrained.padding == study.fitting.learned.padding == "left out"
    assert study.scored.reference.padding == "token"
    assert study.scored.accuracies()["learned"].token > 0.95


def test_a_model_whose_positions_do_not_skip_padding_is_refused(left, skipping, monkeypatch):
    monkeypatch.setattr(type(skipping), "_accepts_derived_position_ids", lambda self: False)
    with pytest.raises(RaspLensError, match=r"padding.*before tokens.*padding=\"token\""):
        right(skipping, left)


def test_padding_left_out_is_as_without_it():
    seen, ids = torch.tensor([[0, 1, 1]]), torch.tensor([[9, 4, 5]])
    check_left_out(lambda ids, attention_mask=None: ids[..., None] * torch.tensor([1.0, 2.0]), ids, seen)
    with pytest.raises(RaspLensError, match=r"padding.*before tokens"):
        check_left_out(lambda ids, attention_mask=None: ids.cumsum(1)[..., None] * torch.ones(2), ids, seen)


def test_a_model_without_a_mask_cannot_hide_padding(left):
    sizes = {"d_vocab": WIDE, "d_vocab_out": WIDE, "n_ctx": left.n_ctx}
    config = Config(n_layers=1, n_heads=1, d_model=8, d_head=8, d_mlp=0, **sizes)
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in weight_shapes(config).items()}
    model = Transformer(config, weights, causal_mask(1, left.n_ctx))
    with pytest.raises(RaspLensError, match=r"takes no .*mask.*masked"):
        right(model, left, padding="masked")
    assert 0 <= right(model, left) <= 1


@pytest.mark.usefixtures("unchecked")
def test_ways_that_there_are_not(left):
    with pytest.raises(RaspLensError, match=r"padding.*token, masked, left out; got 'left'"):
        token_vocabulary(left, ids_of(left), padding="left")
