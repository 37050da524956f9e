"""A model that `rasplens methods --export` wrote, for tools of a TransformerLens that has `HookedTransformer`.

Nothing here needs RASPLens: scripts run in the environment of the other tool.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformer_lens import HookedTransformer, HookedTransformerConfig


def hooked(path: Path) -> HookedTransformer:
    """The exported weights, whose names are its own; a model without MLPs gets some that write zero."""
    with safe_open(path, "pt") as file:
        config = json.loads(file.metadata()["rasplens"])["config"]
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    mask = weights.pop("mask")
    if not torch.equal(mask, torch.ones_like(mask).tril()):
        raise SystemExit("A HookedTransformer sees the past, and nothing else: take a model with a causal mask.")
    names = "n_layers", "n_heads", "d_model", "d_head", "n_ctx", "d_vocab", "d_vocab_out", "attn_scale"
    model = HookedTransformer(
        HookedTransformerConfig(
            **{name: config[name] for name in names},
            d_mlp=config["d_mlp"] or 1,
            act_fn=config["activation"],
            normalization_type=None if config["normalization"] == "none" else config["normalization"],
            use_attn_result=True,
            use_split_qkv_input=True,
            use_hook_mlp_in=True,
            device="cpu",
        )
    )
    own = model.state_dict()
    absent = {name: torch.zeros_like(array) for name, array in own.items() if "mask" not in name.lower()}
    kept = {name: array for name, array in own.items() if name not in absent}
    model.load_state_dict({**absent, **kept, **weights})
    return model


def answers_at_the_end(pairs: list[dict[str, Any]]) -> tuple[torch.Tensor, torch.Tensor, list[int], list[int]]:
    """Clean and corrupt inputs up to the last position that is asked, and the right and the wrong answer."""
    last = max(answer["at"] for pair in pairs for answer in pair["answers"])
    asked = [(pair, answer) for pair in pairs for answer in pair["answers"] if answer["at"] == last]
    asked = [(pair, answer) for pair, answer in asked if answer["right"] != answer["wrong"]]
    clean, corrupt = (torch.tensor([pair[side][: last + 1] for pair, _ in asked]) for side in ("clean", "corrupt"))
    right, wrong = ([answer[of] for _, answer in asked] for of in ("right", "wrong"))
    return clean, corrupt, right, wrong


def write_scores(path: Path, known: dict[str, Any], scores: dict[str, float]) -> None:
    """Writes the scores of the model's edges in the form of MIB's files."""
    edges = {name: {"score": scores[name]} for name in known["edges"] if name in scores}
    path.write_text(json.dumps({"cfg": known["cfg"], "model": known["model"], "edges": edges}))
    print(f"{len(edges)} of {len(known['edges'])} edges scored")
