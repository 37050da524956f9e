"""Scores of the edges of an exported model by CircuitKIT, in an environment of its own, without RASPLens.

rasplens methods induction --method random --export induction.json
python lab/other_tools/circuit_kit_scores.py induction.json scores.json --method EAP-IG-inputs    # elsewhere
rasplens methods induction --scores scores.json

The other environment has what `REQUIREMENTS` names. CircuitKIT 0.2.0 (Lexsi Labs) is asked for its attribution
patching, `circuitkit.backends.eap`. It takes texts; here the ids of an input stand for them. Its exact patching
asks for a tokenizer, which no model of ours has.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from circuitkit.backends.eap import attribute as backend
from circuitkit.backends.eap.graph import Graph
from exported import answers_at_the_end, hooked, write_scores
from transformer_lens import HookedTransformer

REQUIREMENTS = "circuitkit==0.2.0"
"""For `pip install`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("circuit", type=Path, help="the JSON file; the model is beside it")
    parser.add_argument("scores", type=Path, help="the file to write")
    parser.add_argument("--method", default="EAP", help="such as EAP-IG-inputs or EAP-IG-activations")
    parser.add_argument("--points", type=int, default=50, help="points of integrated gradients")
    arguments = parser.parse_args()
    known = json.loads(arguments.circuit.read_text())
    model = hooked(arguments.circuit.with_suffix(".safetensors"))
    found = edge_scores(model, known["pairs"], arguments.method, arguments.points)
    write_scores(arguments.scores, known, found)


def edge_scores(
    model: HookedTransformer, pairs: list[dict[str, Any]], method: str, points: int
) -> dict[str, float]:
    """CircuitKIT's scores; its names are those of MIB's files."""
    clean, corrupt, *answers = answers_at_the_end(pairs)
    right, wrong = (torch.tensor(of) for of in answers)

    def tokenize(
        model: HookedTransformer, clean: torch.Tensor, corrupt: torch.Tensor, **how: Any
    ) -> tuple[Any, ...]:
        seen, n = torch.ones_like(clean), clean.shape[1]
        return clean, corrupt, seen, seen, torch.full((len(clean),), n), n

    def difference(logits: torch.Tensor, clean: torch.Tensor, lengths: torch.Tensor, label: Any) -> torch.Tensor:
        rows, at = torch.arange(len(logits)), lengths - 1
        return (logits[rows, at, wrong] - logits[rows, at, right]).mean()

    backend.tokenize_batch_pair = tokenize
    graph = Graph.from_model(model)
    backend.attribute(model, graph, [(clean, corrupt, None)], difference, method, ig_steps=points, quiet=True)
    return {name: abs(float(edge.score)) for name, edge in graph.edges.items()}


if __name__ == "__main__":
    main()
