"""A model that somebody wrote by hand, in the style of minGPT, under TransformerLens's names."""

import copy
import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from rasplens.compare import as_studied_model, compare
from rasplens.compare.claims.edges.attention_scores import why_not_patchable
from rasplens.errors import RaspLensError
from rasplens.learned import adapt, load_pretrained
from rasplens.model import HookedModel, Transformer
from rasplens.tasks import get_task

HOOKS = {
    "blocks.{layer}.hook_resid_pre": "h.{layer}:input",
    "blocks.{layer}.hook_resid_post": "h.{layer}",
    "blocks.{layer}.attn.hook_q": "h.{layer}.attn.c_attn:0/3",
    "blocks.{layer}.attn.hook_k": "h.{layer}.attn.c_attn:1/3",
    "blocks.{layer}.attn.hook_v": "h.{layer}.attn.c_attn:2/3",
    "blocks.{layer}.attn.hook_pattern": "h.{layer}.attn.attn_dropout",
    "blocks.{layer}.attn.hook_z": "h.{layer}.attn.c_proj:input",
}


class Attention(nn.Module):
    def __init__(self, width: int, n_heads: int, n_ctx: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.attn_dropout = nn.Dropout(0.0)
        self.register_buffer("bias", torch.tril(torch.ones(n_ctx, n_ctx)))

    def forward(self, x):
        batch, pos, width = x.shape
        parts = self.c_attn(x).split(width, 2)
        q, k, v = (part.view(batch, pos, self.n_heads, -1).transpose(1, 2) for part in parts)
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(self.bias[:pos, :pos] == 0, float("-inf"))
        gathered = self.attn_dropout(scores.softmax(dim=-1)) @ v
        return self.c_proj(gathered.transpose(1, 2).reshape(batch, pos, width))


class Block(nn.Module):
    def __init__(self, width: int, n_heads: int, n_ctx: int, is_plain: bool) -> None:
        super().__init__()
        self.ln_1 = nn.Identity() if is_plain else nn.LayerNorm(width)
        self.attn = Attention(width, n_heads, n_ctx)
        layers = nn.LayerNorm(width), nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width)
        self.mlp = None if is_plain else nn.Sequential(*layers)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x if self.mlp is None else x + self.mlp(x)


class MinGPT(nn.Module):
    """Gives logits and a loss, as minGPT does; `is_plain` leaves out MLPs and layer norm."""

    def __init__(self, n_tokens: int, n_ctx: int, width: int, n_heads: int, is_plain: bool = False) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(n_tokens, width), nn.Embedding(n_ctx, width)
        self.h = nn.ModuleList([Block(width, n_heads, n_ctx, is_plain) for _ in range(2)])
        self.lm_head = nn.Linear(width, n_tokens)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(x), None


class WithMore(MinGPT):
    """With a part that never runs, and one whose output nobody reads."""

    def forward(self, tokens):
        self.ignored(self.wte(tokens))
        return super().forward(tokens)


def transplanted(model: Transformer) -> MinGPT:
    """A model of ours in the other's modules."""
    config, weights = model.config, {name: torch.tensor(array) for name, array in model.weights.items()}
    theirs = WithMore(config.d_vocab, config.n_ctx, config.d_model, config.n_heads, is_plain=True)
    theirs.unused, theirs.ignored = nn.Linear(32, 32), nn.Linear(32, 32)
    with torch.no_grad():
        theirs.wte.weight.copy_(weights["embed.W_E"])
        theirs.wpe.weight.copy_(weights["pos_embed.W_pos"])
        theirs.lm_head.weight.copy_(weights["unembed.W_U"].T)
        theirs.lm_head.bias.copy_(weights["unembed.b_U"])
        for layer, block in enumerate(theirs.h):
            name = f"blocks.{layer}.attn."
            projections = [torch.cat(list(weights[f"{name}W_{letter}"]), dim=1).T for letter in "QKV"]
            block.attn.c_attn.weight.copy_(torch.cat(projections))
            block.attn.c_attn.bias.copy_(torch.cat([weights[f"{name}b_{letter}"].flatten() for letter in "QKV"]))
            block.attn.c_proj.weight.copy_(weights[f"{name}W_O"].flatten(0, 1).T)
            block.attn.c_proj.bias.copy_(weights[f"{name}b_O"])
    return theirs.eval()


@pytest.fixture(scope="module")
def task():
    return get_task("induction")


@pytest.fixture(scope="module")
def ours():
    return load_pretrained("induction").transformer


@pytest.fixture
def theirs(ours):
    return transplanted(ours)


@pytest.fixture
def sizes(task):
    return {"n_heads": 1, "n_ctx": task.n_ctx, "d_vocab": len(task.vocab)}


def test_every_activation_is_that_of_the_same_model_of_ours(ours, theirs, sizes, task):
    adapted, tokens = adapt(theirs, HOOKS, **sizes), torch.as_tensor(task.held_out[:20])
    logits, cache = adapted.run_with_cache(tokens)
    expected, known = HookedModel(ours).run_with_cache(tokens)
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
    assert set(adapted.hook_dict) <= set(known)
    for name in adapted.hook_dict:
        torch.testing.assert_close(cache[name].reshape(known[name].shape), known[name], rtol=1e-4, atol=1e-4)
    assert (adapted.cfg.n_layers, adapted.cfg.d_model, adapted.cfg.d_head) == (2, 32, 32)


def test_edits_do_what_they_do_in_ours(ours, theirs, sizes, task):
    adapted, tokens = adapt(theirs, HOOKS, **sizes), torch.as_tensor(task.held_out[:20])
    for name in adapted.hook_dict:
        hooks = [(name, lambda value, hook: value.flip(1))]
        found, expected = (model.run_with_hooks(tokens, fwd_hooks=hooks) for model in (adapted, HookedModel(ours)))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_the_module_itself_is_left_alone(theirs, sizes, task):
    adapted = adapt(theirs, HOOKS, **sizes)
    twin, tokens = copy.deepcopy(adapted), torch.as_tensor(task.held_out[:2])
    before = adapted(tokens)
    with torch.no_grad():
        twin.get_submodule("module").lm_head.weight.zero_()
    assert torch.equal(adapted(tokens), before)
    assert not torch.equal(twin(tokens), before)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in theirs.modules())
    assert not any(hasattr(part, "name") for part in theirs.modules())


@pytest.mark.slow
def test_it_is_compared_as_if_it_were_ours(theirs, sizes, task):
    adapted = adapt(theirs, HOOKS, **sizes)
    assert compare("induction", adapted, task=task, config="quick").verdict.answer == "implements"
    stranger = adapt(MinGPT(len(task.vocab), task.n_ctx, 32, 1).eval(), HOOKS, **sizes)
    assert compare("induction", stranger, task=task, config="quick").verdict.answer == "does not"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"blocks.{layer}.hook_resid_post": "blocks.{layer}"}, "'blocks.0'. It has wte, wpe, h"),
        ({"blocks.0.hook_mlp_out": "h.7.mlp"}, "'h.7.mlp' for blocks.0.hook_mlp_out"),
        ({"blocks.{layer}.attn.hook_q": "h.{layer}.attn.c_attn:3/3"}, "3 of 3"),
        ({"blocks.{layer}.attn.hook_q": "h.{layer}.attn.c_attn:out"}, "'h.{layer}.attn.c_attn:out'"),
        (
            {"blocks.{layer}.attn.hook_pattern": "h.{layer}.attn.c_proj"},
            "blocks.0.attn.hook_pattern must have a shape",
        ),
        ({"blocks.{layer}.attn.hook_v": "h.{layer}.attn.c_attn:1/3"}, "hook_pattern times blocks.0.attn.hook_v"),
        (
            {"blocks.{layer}.hook_resid_post": "h.{layer}.ln_1"},
            "blocks.0.hook_resid_post and blocks.1.hook_resid_pre",
        ),
        ({"blocks.0.hook_mlp_out": "unused"}, "blocks.0.hook_mlp_out is not live: unused"),
        ({"blocks.0.hook_mlp_out": "ignored"}, "an edit at ignored"),
    ],
)
def test_what_is_not_live_is_told(theirs, sizes, change, message):
    with pytest.raises(RaspLensError) as error:
        adapt(theirs, HOOKS | change, **sizes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


NEEDED = [
    "blocks.0.hook_resid_pre",
    *(f"blocks.0.{name}" for name in ("hook_resid_post", "attn.hook_pattern", "attn.hook_z")),
]


@pytest.mark.parametrize("name", ["hook_resid_post", "attn.hook_pattern", "attn.hook_z"])
@pytest.mark.parametrize("layer", ["{layer}", "1"])
def test_hook_points_that_comparisons_need_are_asked_for(theirs, sizes, name, layer):
    """Without a pattern, `adapt` took a model with fused attention, and `compare` refused it."""
    lacks = {point: place for point, place in HOOKS.items() if not point.endswith(name)}
    if layer == "1":  # the first layer has it
        lacks[f"blocks.0.{name}"] = HOOKS[f"blocks.{{layer}}.{name}"].replace("{layer}", "0")
    with pytest.raises(RaspLensError, match=f"lacks 'blocks.{0 if layer == '{layer}' else 1}.{name}'"):
        adapt(theirs, lacks, **sizes)


def test_more_that_is_refused(theirs, sizes):
    with pytest.raises(RaspLensError, match=r"hook_pattern .*\(4, 4, 12, 12\); it has \(4, 1, 12, 12\)"):
        adapt(theirs, HOOKS, **{**sizes, "n_heads": 4})
    with pytest.raises(RaspLensError, match="hook_resid_pre"):
        adapt(theirs, {"blocks.{layer}.attn.hook_z": HOOKS["blocks.{layer}.attn.hook_z"]}, **sizes)
    with pytest.raises(RaspLensError, match=r"d_vocab_out\]; "):
        adapt(nn.Sequential(nn.Embedding(12, 3), nn.Flatten()), dict.fromkeys(NEEDED, "0"), **sizes)
    theirs.h[0].attn.attn_dropout.p = 0.5
    with pytest.raises(RaspLensError, match=r"eval\(\)"):
        adapt(theirs.train(), HOOKS, **sizes)


@pytest.mark.slow
def test_what_goes_into_the_softmax_makes_routes_testable(theirs, sizes, task):
    """With the scores at a hook point, the claims on routes are those of the same model of ours."""

    class OwnSoftmax(nn.Module):
        def forward(self, scores):
            return scores.softmax(dim=-1)

    class WithSoftmax(Attention):
        def forward(self, x):
            batch, pos, width = x.shape
            q, k, v = (
                part.view(batch, pos, self.n_heads, -1).transpose(1, 2) for part in self.c_attn(x).split(width, 2)
            )
            scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
            pattern = self.softmax(scores.masked_fill(self.bias[:pos, :pos] == 0, float("-inf")))
            return self.c_proj((pattern @ v).transpose(1, 2).reshape(batch, pos, width))

    for block in theirs.h:
        block.attn.__class__, block.attn.softmax = WithSoftmax, OwnSoftmax()
    scores = {
        "blocks.{layer}.attn.hook_attn_scores": "h.{layer}.attn.softmax:input",
        "blocks.{layer}.attn.hook_pattern": "h.{layer}.attn.softmax",
    }
    adapted = adapt(theirs, HOOKS | scores, **sizes)
    assert why_not_patchable(as_studied_model(adapted, task, task.held_out[:4])) == ""
    plain = adapt(transplanted(load_pretrained("induction").transformer), HOOKS, **sizes)
    assert "hook_attn_scores" in why_not_patchable(as_studied_model(plain, task, task.held_out[:4]))
    wrong = {"blocks.{layer}.attn.hook_attn_scores": "h.{layer}.attn.softmax"}
    with pytest.raises(RaspLensError, match=r"hook_pattern .*softmax.* .*hook_attn_scores"):
        adapt(theirs, HOOKS | scores | wrong, **sizes)


def test_queries_and_keys_that_are_swapped_are_told(theirs, sizes):
    swapped = {
        "blocks.{layer}.attn.hook_q": HOOKS["blocks.{layer}.attn.hook_k"],
        "blocks.{layer}.attn.hook_k": HOOKS["blocks.{layer}.attn.hook_q"],
    }
    with pytest.raises(RaspLensError, match=r"hook_q .*hook_k .*swapped"):
        adapt(theirs, HOOKS | swapped, **sizes)


def test_a_name_that_is_nearly_one_is_told(theirs, sizes):
    with pytest.raises(RaspLensError, match=r"'blocks.{layer}.hook_residpost'.*'blocks.{layer}.hook_resid_post'"):
        adapt(theirs, {"blocks.{layer}.hook_residpost": "h.{layer}"}, **sizes)
    own = adapt(theirs, HOOKS | {"blocks.{layer}.norm": "h.{layer}.ln_1"}, **sizes)
    assert "blocks.1.norm" in own.hook_dict  # a name of one's own


def test_layers_with_tied_weights_are_told(theirs, sizes):
    theirs.h[1] = theirs.h[0]
    with pytest.raises(RaspLensError, match=r"h\.0\S* runs 2 times"):
        adapt(theirs, HOOKS, **sizes)


class CalledByName(WithMore):
    """Blocks get their input by name, as those of newer libraries do; the answer has a field for logits."""

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x=x)
        return SimpleNamespace(logits=self.lm_head(x))


def test_modules_may_be_called_by_name(theirs, sizes, task):
    tokens = torch.as_tensor(task.held_out[:5])
    expected = adapt(theirs, HOOKS, **sizes).run_with_cache(tokens)
    theirs.__class__ = CalledByName
    logits, cache = adapt(theirs, HOOKS, **sizes).run_with_cache(tokens)
    assert torch.equal(logits, expected[0])
    assert all(torch.equal(cache[name], expected[1][name]) for name in cache)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ({"n_heads": 5}, r"\d+ wide.* 5 heads"),
        ({"n_ctx": 999}, r"999 token ids below \d+ \(n_ctx, d_vocab\): "),
        ({"d_vocab": 999}, "below 999"),
    ],
)
def test_sizes_that_are_not_the_modules_are_told(theirs, sizes, size, message):
    with pytest.raises(RaspLensError, match=message) as error:
        adapt(theirs, HOOKS, **{**sizes, **size})
    assert "\n" not in str(error.value)


def test_weights_that_are_no_numbers_or_half_ones_are_told(theirs, sizes):
    with pytest.raises(RaspLensError, match=r"torch\.float16.*float\(\)"):
        adapt(copy.deepcopy(theirs).half(), HOOKS, **sizes)
    with torch.no_grad():
        theirs.lm_head.weight[0, 0] = math.nan
    with pytest.raises(RaspLensError, match=r"logits.*not finite"):
        adapt(theirs, HOOKS, **sizes)
