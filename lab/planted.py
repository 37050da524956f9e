"""A program as a part of a model as large as GPT-2 small: an induction circuit planted among random weights.

python -m lab.planted --write docs/comparison-speed.md

Twelve layers of twelve heads, 768 directions, layer norm, 50,257 tokens, initialised as GPT-2 is. In the planted
model L3H5 moves each letter one position on and L8H2 looks for it, through subspaces of the stream that all other
heads and neurons write into as well. The others are twenty models without the circuit. Of each it is asked whether
a part of it implements `programs.induction()`.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from lab.page import show, table
from rasplens.compare import compare, token_vocabulary
from rasplens.compare.subject.vocabulary import GivenVocabulary
from rasplens.compile import compile_program
from rasplens.model import Config, Transformer, bias_shapes, causal_mask, weight_shapes
from rasplens.model.hook_points import param_name
from rasplens.tasks import Task, get_task

GPT2_SMALL = Config(
    n_layers=12,
    n_heads=12,
    d_model=768,
    d_head=64,
    d_mlp=3072,
    n_ctx=1024,
    d_vocab=50257,
    d_vocab_out=50257,
    activation="gelu_new",
    normalization="LN",
)

MOVER, MATCHER = (3, 5), (8, 2)
"""The planted heads, as layer and index: of the letter before, and of what followed it."""

EMBEDDED = 8.0
"""The length of a token's embedding, and of a position's; all blocks together write about as much."""

SHARP = 50.0
"""The score of a key that matches, above that of most others."""

N_RANDOM = 20

MINUTES, GIB = 4, 4
"""The minutes of processor time, over all cores, and the GiB to stay below."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    parser.add_argument("--random", type=int, default=N_RANDOM, help="how many models without the circuit")
    parser.add_argument("--config", default="standard", choices=["quick", "standard", "thorough"])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        print(json.dumps(one(arguments.one, arguments.config)))
        return
    text = cost_table(arguments.random, arguments.config)
    show(text, arguments.write, "planted")


def random_weights(seed: int) -> dict[str, np.ndarray]:
    """Weights as GPT-2's are initialised: normal, 0.02 wide, those that write to the stream narrower."""
    rng = np.random.default_rng(seed)
    narrow = 0.02 / np.sqrt(2 * GPT2_SMALL.n_layers)
    weights = {name: np.zeros(shape, np.float32) for name, shape in bias_shapes(GPT2_SMALL).items()}
    for name, shape in weight_shapes(GPT2_SMALL).items():
        if ".ln" in name or name.startswith("ln"):
            weights[name] = np.full(shape, float(name.endswith(".w")), np.float32)
        else:
            scale = narrow if name.endswith(("W_O", "W_out")) else 0.02
            weights[name] = rng.standard_normal(shape, np.float32) * np.float32(scale)
    return weights


def planted_weights(seed: int) -> dict[str, np.ndarray]:
    """Random weights with an induction circuit in two of their heads.

    Tokens have random directions in a subspace of 64 dimensions, positions waves of 32 frequencies in another. The
    mover's queries are the waves one step back. It writes the token into a third subspace, where the matcher looks
    for its own, and writes what stands there into a fourth, which is unembedded.
    """
    weights, rng = random_weights(seed), np.random.default_rng([seed, 1])
    d_head, scale = GPT2_SMALL.d_head, np.sqrt(GPT2_SMALL.d_model)
    axes = np.linalg.qr(rng.normal(size=(GPT2_SMALL.d_model, 4 * d_head)))[0].astype(np.float32)
    token, position, before, after = np.split(axes.T, 4)  # each [d_head, d_model]
    directions = rng.standard_normal((GPT2_SMALL.d_vocab, d_head), np.float32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    frequencies = rng.uniform(0.1, np.pi, d_head // 2)
    steps = np.arange(GPT2_SMALL.n_ctx)
    waves = waves_of(steps, frequencies)
    weights["embed.W_E"] += EMBEDDED * directions @ token
    weights["pos_embed.W_pos"] += EMBEDDED * waves.astype(np.float32) @ position
    # Layer norm makes the stream as long as √d_model; embeddings are about half of it.
    back = np.linalg.lstsq(waves, waves_of(steps - 1, frequencies), rcond=None)[0]
    length = scale / 2
    sharp = np.sqrt(SHARP * GPT2_SMALL.attn_scale) / length
    for (layer, head), query, key, to in (
        (MOVER, back.T @ position, position, before),
        (MATCHER, token, before, after),
    ):
        for letter, array in (
            ("Q", sharp * query.T),
            ("K", sharp * key.T),
            ("V", token.T / length),
            ("O", EMBEDDED * to),
        ):
            weights[param_name(f"W_{letter}", layer)][head] = array
    weights["unembed.W_U"] = (2 * SHARP / length * directions @ after).T.astype(np.float32)
    return {name: array.astype(np.float32) for name, array in weights.items()}


def waves_of(steps: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Sines and cosines of positions, `[position, 2 × frequency]`, of length one."""
    angles = steps[:, None] * frequencies
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(len(frequencies))


def letters(task: Task) -> GivenVocabulary:
    """The letters of the task as tokens somewhere among the 50,257, behind the one that begins a text."""
    ids = {token: 1_000 + 37 * i for i, token in enumerate(task.vocab)}
    return token_vocabulary(task, ids, prefix=[GPT2_SMALL.d_vocab - 1])


def model(seed: int) -> Transformer:
    """The model of a seed; that of seed 0 has the circuit."""
    weights = random_weights(seed) if seed else planted_weights(seed)
    return Transformer(GPT2_SMALL, weights, causal_mask(GPT2_SMALL.n_layers, GPT2_SMALL.n_ctx))


def one(seed: int, config: str) -> dict[str, object]:
    """Compare the model of a seed: the verdict, where the program's parts were found, and what it took."""
    task = get_task("induction")
    compiled = compile_program(task.programs["induction"], task.vocab, task.n_ctx, mask=task.visible)
    asked, began = model(seed), time.process_time()

    def progress(stage: str) -> None:
        print(f"{time.process_time() - began:6.0f} s {stage}", file=sys.stderr, flush=True)

    found = compare(
        compiled,
        asked,
        task=task,
        config=config,
        vocabulary=letters(task),
        as_part=True,
        progress=progress,
    )
    heads = found.tables.get("part_heads", pd.DataFrame(columns=["variable", "head"]))
    return {
        "verdict": str(found.verdict.answer),
        "right": found.accuracies["learned"].token,
        "heads": [f"{row.variable} in {row.head}" for row in heads.itertuples()],
        "minutes": (time.process_time() - began) / 60,
        "GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def cost_table(n_random: int, config: str) -> str:
    """A row for the planted model, and one for all others."""
    found = []
    for seed in range(n_random + 1):
        command = [sys.executable, "-m", "lab.planted", "--one", str(seed), "--config", config]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found.append(json.loads(done.stdout))
        print(found[-1], flush=True)
    rows = []
    for name, those in (("planted", found[:1]), (f"{n_random} random", found[1:])):
        verdicts = Counter(str(one["verdict"]) for one in those)
        said = ", ".join(verdict if len(those) == 1 else f"{n} {verdict}" for verdict, n in verdicts.items())
        heads = sorted({part for one in those for part in one["heads"]})
        minutes, memory = (max(one[what] for one in those) for what in ("minutes", "GiB"))
        most = f"**{minutes:.1f}** (to reach: {MINUTES})", f"**{memory:.1f}** (to reach: {GIB})"
        rows.append([name, said, ", ".join(heads) or "none", *most])
    headings = ["model", f"verdict, `{config}`", "heads by effect", "CPU minutes", "GiB"]
    return table(headings, rows)


if __name__ == "__main__":
    main()
