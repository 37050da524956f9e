"""Hook points through which nothing passes, or that show a copy, are told from those that are alive."""

import pytest
import torch
import transformers
from transformer_lens import HookedRootModule
from transformer_lens.hook_points import HookPoint
from transformer_lens.model_bridge.sources import build_bridge_from_module

from rasplens.compare import as_studied_model, token_vocabulary
from rasplens.compare.subject.live_hooks import check_live
from rasplens.errors import RaspLensError


class Toy(HookedRootModule):
    """One number a token, doubled, with hook points of every kind."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.alive, self.without_effect, self.copy, self.never = (HookPoint() for _ in range(4))
        self.setup()

    def forward(self, tokens):
        value = self.alive(tokens.float() * self.weight)
        self.copy(value)
        return value * 2 + 0 * self.without_effect(value)


TOKENS = torch.arange(3)[None]


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (["alive", "copy"], r"'copy'.*reach the logits"),
        (["alive", "never"], r"'never'.*passes"),
    ],
)
def test_dead_points_are_named(points, said):
    with pytest.raises(RaspLensError, match=said):
        check_live(Toy(), TOKENS, points)


def test_live_points_are_alive_also_without_effect_and_without_gradients():
    toy = Toy().requires_grad_(requires_grad=False)
    with torch.no_grad():
        check_live(toy, TOKENS, ["alive", "without_effect"])
    assert toy.alive.fwd_hooks == []


def test_a_bridge_whose_attention_is_a_copy_cannot_be_compared(task):
    """TransformerLens shows OPT's attention; what is edited there changes nothing."""
    config = transformers.OPTConfig(
        vocab_size=20,
        hidden_size=16,
        ffn_dim=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        word_embed_proj_dim=16,
        max_position_embeddings=32,
        attn_implementation="eager",
    )
    model = build_bridge_from_module(
        transformers.OPTForCausalLM(config).eval(), "OPTForCausalLM", hf_config=config
    )
    vocabulary = token_vocabulary(task, {letter: 3 + i for i, letter in enumerate(task.vocab)})
    with pytest.raises(RaspLensError, match=r"'blocks\.0\.attn\.hook_pattern'.*reach the logits"):
        as_studied_model(model, task, task.held_out[:10], vocabulary)
