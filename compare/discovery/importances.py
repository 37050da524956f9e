"""Scores and circuits in the form of MIB's circuit track: `importances.json`.

The form is that of Mueller et al. 2025, "MIB: A Mechanistic Interpretability Benchmark" (arXiv 2504.13151), and
of the graph files of Hanna et al. 2024. There, embeddings are one node, `input`. A head is `a0.h1` and reads as
`a0.h1<q>`. An MLP is `m0`.
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rasplens.compare.discovery.edge_graph import EMBED, LOGITS, POS_EMBED, EdgeGraph, edge_graph, place_of
from rasplens.compare.discovery.problem import Problem
from rasplens.errors import RaspLensError
from rasplens.model import Config
from rasplens.model.storage import write_atomically

INPUT = "input"

SIZES = "n_layers", "n_heads", "d_model"
"""The fields of a file that give its model's shape."""


def read_importances(path: str | Path, config: Config, model: str | None = None) -> dict[str, float]:
    """Scores by edge of a file; those of `input` count for token and position embeddings alike.

    So they are to be scored with embeddings as one node as well: `Scoring(embeddings="one")`.

    Args:
        path: The file.
        config: The model's.
        model: Its `fingerprint`: a file that has another is refused. Files from elsewhere have none.

    Raises:
        RaspLensError: If there is no such file, it is no such file or has no scores, an edge is none of the
            model's, a score is no finite number, or it is of a model of another shape or of other weights.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        scores = {str(name): float(edge["score"]) for name, edge in content["edges"].items()}
        sizes, of_model = content.get("cfg", {}), content.get("model")
        other = [name for name in SIZES if sizes.get(name, getattr(config, name)) != getattr(config, name)]
    except FileNotFoundError:
        raise RaspLensError(f"There is no file {path}.") from None
    except OSError as error:
        raise RaspLensError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RaspLensError(
            f'{path} holds no importances. They look like {{"edges": {{"input->a0.h0<q>": {{"score": 0.5}}}}}}.'
        ) from None
    theirs = _names(edge_graph(config))
    known = set(theirs.values())
    if unknown := [name for name in scores if name not in known]:
        raise RaspLensError(f"{path} names the edge {unknown[0]!r}, which the model does not have.")
    if other:
        own, its = getattr(config, other[0]), sizes[other[0]]
        raise RaspLensError(f"{path} is for a model with {other[0]}={its}; this model has {own}.")
    if None not in (of_model, model) and of_model != model:
        raise RaspLensError(
            f"{path} holds the scores of a model with other weights. Give the program, --kind and --seed of that "
            "model."
        )
    if not scores:
        raise RaspLensError(f"{path} has no scores.")
    if odd := [name for name, score in scores.items() if not math.isfinite(score)]:
        raise RaspLensError(f"{path} gives the edge {odd[0]!r} the score {scores[odd[0]]}; scores must be finite.")
    return {own: scores[name] for own, name in theirs.items() if name in scores}


def write_importances(
    path: str | Path,
    config: Config,
    truth: Collection[str],
    scores: Mapping[str, float] | None = None,
    model: str | None = None,
    problem: Problem | None = None,
) -> None:
    """Writes a circuit, and scores if there are any; without, edges of the circuit score 1 and others 0.

    With a problem, the file has its pairs of inputs: `pairs`, each with the ids of the `clean` and the `corrupt`
    input, and of each answer the position `at` which it is read, and the ids of the `right` logit and of the
    `wrong` one, that of the other input's answer.

    Args:
        path: The file.
        config: The model's.
        truth: The edges of the circuit.
        scores: By edge; of the two embeddings' the larger counts.
        model: Its `fingerprint`, by which a file of other weights is told.
        problem: What methods are asked.

    Raises:
        RaspLensError: If an edge is none of the model's.
        StorageError: If the file cannot be written.
    """
    graph = edge_graph(config)
    inside = graph.mask_of(truth)
    if scores is not None:
        graph.mask_of(scores)
    edges: dict[str, dict[str, Any]] = {}
    for (own, name), is_in in zip(_names(graph).items(), inside, strict=True):
        score = float(is_in) if scores is None else float(scores.get(own, 0.0))
        before = edges.get(name, {"score": score, "in_graph": False})
        edges[name] = {
            "score": max(before["score"], score, key=abs),
            "in_graph": bool(is_in) or before["in_graph"],
        }
    used = {end for name, edge in edges.items() if edge["in_graph"] for end in name.partition("<")[0].split("->")}
    nodes = {node: {"in_graph": node in used} for name in edges for node in name.partition("<")[0].split("->")}
    sizes = {"n_layers": config.n_layers, "n_heads": config.n_heads, "parallel_attn_mlp": False}
    content = {"cfg": {**sizes, "d_model": config.d_model}, "nodes": nodes, "edges": edges}
    content |= {} if model is None else {"model": model}
    content |= {} if problem is None else {"pairs": list(_pairs(problem))}
    write_atomically(Path(path), json.dumps(content, indent=1).encode())


def _pairs(problem: Problem) -> Iterator[dict[str, Any]]:
    """The pairs of inputs of a problem, in JSON values."""
    logits = (problem.right, problem.wrong)
    for pair, (clean, corrupt) in enumerate(zip(problem.tokens.tolist(), problem.others.tolist(), strict=True)):
        answers = []
        for answer in np.flatnonzero(problem.counts[pair]).tolist():
            ids = [None if of is None else int(of[pair, answer]) for of in logits]
            answers.append({"at": problem.places[answer], "right": ids[0], "wrong": ids[1]})
        yield {"clean": clean, "corrupt": corrupt, "answers": answers}


def _names(graph: EdgeGraph) -> dict[str, str]:
    """By edge, its name in such files."""
    return {edge: "->".join(map(_name, edge.split("->"))) for edge in graph.edges}


def _name(end: str) -> str:
    if end in (EMBED, POS_EMBED):
        return INPUT
    if end == LOGITS:
        return end
    node, dot, letter = end.partition(".")
    layer, head = place_of(node)
    return f"m{layer}" if head is None else f"a{layer}.h{head}" + (f"<{letter}>" if dot else "")
