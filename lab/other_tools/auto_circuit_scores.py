"""Scores of the edges of an exported model by auto-circuit, in an environment of its own, without RASPLens.

rasplens methods induction --method random --export induction.json
python lab/other_tools/auto_circuit_scores.py induction.json scores.json --points 50    # in the other environment
rasplens methods induction --scores scores.json

The other environment has what `REQUIREMENTS` names. auto-circuit 1.0.1 (Miller et al. 2024, "Transformer Circuit
Faithfulness Metrics are not Robust", arXiv 2407.08734) is asked for its mask gradients: with one point edge
attribution patching, with more integrated gradients on the way from clean to corrupt activations. It reads one
position of each input, here the last.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from auto_circuit.data import PromptDataLoader, PromptDataset
from auto_circuit.prune_algos.mask_gradient import mask_gradient_prune_scores
from auto_circuit.utils.graph_utils import patchable_model
from exported import answers_at_the_end, hooked, write_scores
from transformer_lens import HookedTransformer

REQUIREMENTS = "auto-circuit==1.0.1 attrs transformer-lens<3 numpy<2 pyarrow<19 pandas<2.3 datasets<4"
"""For `pip install`; its own are too wide for what it imports."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("circuit", type=Path, help="the JSON file; the model is beside it")
    parser.add_argument("scores", type=Path, help="the file to write")
    parser.add_argument("--points", type=int, default=1, help="points of integrated gradients; 1 for EAP")
    arguments = parser.parse_args()
    known = json.loads(arguments.circuit.read_text())
    model = hooked(arguments.circuit.with_suffix(".safetensors"))
    write_scores(arguments.scores, known, edge_scores(model, known["pairs"], arguments.points))


def edge_scores(model: HookedTransformer, pairs: list[dict[str, Any]], points: int) -> dict[str, float]:
    """auto-circuit's scores, by the names of MIB's files."""
    clean, corrupt, *answers = answers_at_the_end(pairs)
    right, wrong = ([torch.tensor([one]) for one in of] for of in answers)
    data = PromptDataset(clean, corrupt, right, wrong)
    loader = PromptDataLoader(data, seq_len=clean.shape[1], diverge_idx=0, batch_size=len(clean), shuffle=False)
    patchable = patchable_model(model, factorized=True, slice_output="last_seq", separate_qkv=True, device="cpu")
    integrated = {"integrated_grad_samples": points} if points > 1 else {"mask_val": 0.0}
    scores = mask_gradient_prune_scores(
        patchable, loader, None, grad_function="logit", answer_function="avg_diff", **integrated
    )
    return {name_of(edge): float(scores[edge.dest.module_name][edge.patch_idx].abs()) for edge in patchable.edges}


def name_of(edge: Any) -> str:
    """An edge in MIB's words: "A0.1->A1.0.Q" is `a0.h1->a1.h0<q>`."""

    def node(name: str) -> str:
        if name in ("Resid Start", "Resid End"):
            return "input" if name == "Resid Start" else "logits"
        if name.startswith("MLP"):
            return f"m{name.removeprefix('MLP ')}"
        layer, head, *letter = name.removeprefix("A").split(".")
        return f"a{layer}.h{head}" + (f"<{letter[0].lower()}>" if letter else "")

    return f"{node(edge.src.name)}->{node(edge.dest.name)}"


if __name__ == "__main__":
    main()
