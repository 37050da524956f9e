"""The tables of docs/training.md: training here beside the published loops, in one run.

    python -m lab.train                             prints the tables
    python -m lab.train --write docs/training.md    puts them between the page's markers
    python -m lab.train --parts --write docs/training.md    only what each part of our step is worth

The published notebooks trained a HookedTransformer in eager PyTorch. Their loop is run here with the same model
as a `HookedModel`, on the same batches; and with `HookedTransformer` itself where a TransformerLens below 4 is
installed; and the plain forward pass in our own jitted step. All sides take turns: a busy machine slows all.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import torch

from lab.page import show, table
from rasplens.learned import Recipe, get_recipe, untrained, use_all_cores
from rasplens.learned.training import live_forward as live
from rasplens.learned.training.steps import ForwardBuilder, build_steps, usable_devices
from rasplens.learned.training.trainer import train
from rasplens.model import Config, HookedModel
from rasplens.model.jax_forward import jax_forward
from rasplens.tasks import Task, get_task

STEPS, ROUNDS = 20, 8
"""Steps that are timed at once, and how often."""


@dataclass(frozen=True)
class Case:
    """A published training, and how many times as fast ours is to be."""

    task: str
    name: str
    fast: str
    theirs: str
    per_step: float


CASES = (
    Case("sort", "sort, d=128", "fast", "published", 12),
    Case("compression", "compression, 2 layers, d=64", "fast", "published", 10),
    Case("compression_notebook", "compression, 3 layers, d=8", "fast", "published", 5),
    Case("copy", "copy, 4 heads, d=32, loss at every position", "fast", "published", 5),
    Case("copy", "copy, smeared keys, loss where the letter is determined", "fast", "fast", 5),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    parser.add_argument("--steps-only", action="store_true", help="leave out the trainings to an accuracy")
    parser.add_argument("--parts", action="store_true", help="measure only what each part of our step is worth")
    arguments = parser.parse_args()
    load = f"Before it began, the machine's load was {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    use_all_cores()
    if arguments.parts:
        text = f"{parts_table()}\n\n{load}"
        show(text, arguments.write, "train-parts")
        return
    sections = [per_step_table(), growth_table()]
    if not arguments.steps_only:
        sections.insert(1, headline_table())
    text = "\n\n".join([*sections, load])
    show(text, arguments.write, "train")


def per_step_table() -> str:
    """One step: ours, the eager loop, and the floor."""
    rate = matmul_rate()
    rows = []
    for case in CASES:
        task, recipe = get_task(case.task), get_recipe(case.task, case.theirs)
        ours, flops = our_steps(task, recipe)
        plain, _ = our_steps(task, recipe, forward=plain_forward)
        eager = {"HookedModel": eager_steps(task, recipe), **hooked_transformer_steps(task, recipe)}
        others = {"plain": plain, **eager}
        times: dict[str, list[float]] = {name: [] for name in ("ours", *others)}
        for _ in range(ROUNDS):
            for name, step in {"ours": ours, **others}.items():
                times[name].append(step())
        best = {name: min(values) for name, values in times.items()}
        floor = 1e3 * flops / rate
        rows.append(
            [
                case.name,
                f"{recipe.batch_size:,}",
                f"**{best['HookedModel'] / best['ours']:.1f}** (to reach: {case.per_step:g})",
                f"{np.median(times['HookedModel']) / np.median(times['ours']):.1f}",
                f"{best['plain'] / best['ours']:.2f}",
                f"{best['ours']:.2f}",
                f"{best['plain']:.2f}",
                *(f"{best[name]:.1f}" for name in eager),
                f"{flops / 1e6:.0f}",
                f"{floor:.2f}",
                f"{best['ours'] / floor:.1f}",
            ]
        )
        print(rows[-1], flush=True)
    headings = ["training", "batch", "eager / ours, best times", "of medians", "plain jitted / ours, best times"]
    headings += ["ours, ms per step", "plain jitted, ms", *(f"eager {name}, ms" for name in eager)]
    headings += ["Mflop per step", "floor, ms", "ours / floor"]
    devices = len(jax.devices())
    title = f"Per step (best of {ROUNDS} turns of {STEPS} steps; {devices} cores, {rate / 1e9:.0f} Gflop/s)"
    return f"### {title}\n\n{table(headings, rows)}"


def parts_table() -> str:
    """How much longer a step takes with the plain forward pass, and with ours without each of its parts."""
    rows = []
    for case in CASES:
        task, recipe = get_task(case.task), get_recipe(case.task, case.theirs)
        sides = {"ours": our_steps(task, recipe)[0], "plain jitted": our_steps(task, recipe, 1, plain_forward)[0]}
        for name, (forward, changes) in PARTS.items():
            with ExitStack() as stack:
                for target, attribute, instead in changes:
                    stack.enter_context(patch.object(target, attribute, instead))
                build_steps.cache_clear()
                sides[name], _ = our_steps(task, recipe, 1, forward)
        build_steps.cache_clear()
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(ROUNDS):
            for name, step in sides.items():
                times[name].append(step())
        best = {name: min(values) for name, values in times.items()}
        ratios = [best[name] / best["ours"] for name in best if name != "ours"]
        rows.append([case.name, *(f"{ratio:.2f}" for ratio in ratios), f"{best['ours']:.2f}"])
        print(rows[-1], flush=True)
    headings = ["training", "plain jitted", *(f"without {name}" for name in PARTS), "ours, ms per step"]
    title = f"What the parts are worth (times as long without them, best of {ROUNDS} turns of {STEPS} steps)"
    return f"### {title}\n\n{table(headings, rows)}"


def plain_forward(config: Config, mask: np.ndarray, positions: tuple[int, ...]) -> Callable[..., jax.Array]:
    """The plain forward pass: everywhere, read at some positions."""
    everywhere = jax_forward(config, mask)
    return lambda weights, tokens: everywhere(weights, tokens)[:, np.array(positions)]


def at_all_positions(config: Config, mask: np.ndarray, positions: tuple[int, ...]) -> Callable[..., jax.Array]:
    """Our forward pass, computed whether the loss can see it or not."""
    everywhere = live.live_forward(config, mask, tuple(range(mask.shape[-1])))
    return lambda weights, tokens: everywhere(weights, tokens)[:, np.array(positions)]


def read_in_full(stream: live._Embedded, matrices: jax.Array, positions: tuple[int, ...]) -> jax.Array:
    """Return the stream times matrices, computed at every position instead of looked up in tables."""
    return live._Computed(stream.at(positions), positions).read(matrices, positions)


NO_SCORE_TABLES = (live._Layer, "_tables_pay", lambda layer, stream: False)
PARTS: dict[str, tuple[Callable[..., Any], list[tuple[Any, str, Any]]]] = {
    "dead positions left out": (at_all_positions, []),
    "tables in the first layer": (live.live_forward, [(live._Embedded, "read", read_in_full), NO_SCORE_TABLES]),
    "tables of scores": (live.live_forward, [NO_SCORE_TABLES]),
    "values carried as logits": (live.live_forward, [(live, "carries_logits", lambda config: False)]),
    "products of our own": (
        live.live_forward,
        [
            (live, "attend", lambda scores, values: jax.nn.softmax(scores) @ values),
            (live, "times_transposed", lambda left, right: left @ jnp.swapaxes(right, -1, -2)),
        ],
    ),
}
"""Each part of `live_forward`: how it is built and what is patched to leave that part out."""


def headline_table() -> str:
    """From nothing to the published accuracy: our fast recipe against the published recipe in its own loop."""
    rows = []
    for name, wanted, factor in (("sort", (0.9957, 0.0), 25), ("compression", (0.9145, 0.831), 10)):
        task = get_task(name)
        history = train(task, "fast").history
        reached = [r for r in history if r["token"] >= wanted[0] and r["sequence"] >= wanted[1]]
        ours = reached[0]["seconds"]
        theirs, steps = eager_seconds_to(task, get_recipe(name, "published"), wanted, limit=1.02 * factor * ours)
        ratio = f"**{theirs / ours:.0f}**" if steps else f"**> {theirs / ours:.0f}** (stopped there)"
        rows.append(
            [
                name,
                f"{wanted[0]} of tokens" + (f", {wanted[1]} of inputs" if wanted[1] else ""),
                f"{ratio} (to reach: {factor})",
                f"{ours:.1f} ({reached[0]['step']:,} steps)",
                f"{theirs:.0f}" + (f" ({steps:,} steps)" if steps else ", not reached"),
            ]
        )
        print(rows[-1], flush=True)
    headings = ["training", "until, on held-out inputs", "ratio", "ours, s (compilation included)", "eager, s"]
    return f"### To the published accuracy\n\n{table(headings, rows)}"


def growth_table() -> str:
    """How the time of a step grows."""
    sort = get_recipe("sort", "fast")
    rows = []
    for what, values, build in (
        ("models in an ensemble (ms per model and step)", (1, 2, 4, 8), lambda n: (get_task("sort"), sort, n)),
        ("d_model = d_head", (32, 64, 128, 256), lambda d: (get_task("sort"), wide(sort, d), 1)),
        ("numbers to sort", (5, 10, 20, 40), lambda n: (get_task("sort", length=n), sort, 1)),
    ):
        cells = []
        for value in values:
            task, recipe, members = build(value)
            step, _ = our_steps(task, recipe, members)
            best = min(step() for _ in range(ROUNDS)) / members
            cells.append(f"{value}: {best:.2f}")
        rows.append([what, " · ".join(cells)])
        print(rows[-1], flush=True)
    return f"### How a step of the sorting model grows, ms\n\n{table(['with', 'size: time'], rows)}"


def wide(recipe: Recipe, width: int) -> Recipe:
    return replace(recipe, architecture=replace(recipe.architecture, d_model=width, d_head=width))


def our_steps(
    task: Task, recipe: Recipe, members: int = 1, forward: ForwardBuilder = live.live_forward
) -> tuple[Callable[[], float], float]:
    """A function that trains for some steps and gives ms per step, and the operations of a step."""
    steps = build_steps(task, recipe, usable_devices(task, recipe), forward)
    start = untrained(recipe.architecture, task, 0)
    names = [name for name in start.weights if name not in start.config.frozen]
    weights = {name: jnp.stack([jnp.asarray(start.weights[name])] * members) for name in names}
    ids = task.sample(np.random.default_rng(0), members * STEPS * recipe.batch_size).astype(np.int32)
    targets = recipe.objective(task).target(ids).astype(np.int32)
    shape = members, STEPS, recipe.batch_size, -1
    state = [(weights, steps.begin(weights))]
    arguments = np.ones(members, dtype=bool), ids.reshape(shape), targets.reshape(shape)

    def run() -> float:
        began = time.perf_counter()
        state[0], losses = steps.run(state[0], *arguments)
        jax.block_until_ready(losses)
        return 1e3 * (time.perf_counter() - began) / STEPS

    run()
    return run, operations(task, recipe, forward)


def operations(task: Task, recipe: Recipe, forward: ForwardBuilder) -> float:
    """The floating-point operations of one step, as XLA counts them in the compiled program for one device."""
    steps = build_steps(task, recipe, 1, forward)
    start = untrained(recipe.architecture, task, 0)
    weights = {n: jnp.asarray(a)[None] for n, a in start.weights.items() if n not in start.config.frozen}
    ids = task.sample(np.random.default_rng(0), recipe.batch_size).astype(np.int32)
    batch = ids[None, None], recipe.objective(task).target(ids).astype(np.int32)[None, None]
    lowered = steps.run.lower((weights, steps.begin(weights)), np.ones(1, dtype=bool), *batch)
    return float(lowered.compile().cost_analysis()["flops"])


def eager_steps(task: Task, recipe: Recipe) -> Callable[[], float]:
    """The published loop on a `HookedModel`: a function that gives ms per step."""
    model = HookedModel(untrained(recipe.architecture, task, 0))
    return timed(eager_loop(model, model.cfg.frozen, task, recipe))


def hooked_transformer_steps(task: Task, recipe: Recipe) -> dict[str, Callable[[], float]]:
    """Return the published loop on TransformerLens's `HookedTransformer`, where it can express the model."""
    architecture = recipe.architecture
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError:
        return {}
    if architecture.positions != "learned" or architecture.smeared_keys:
        return {}
    config = HookedTransformerConfig(
        n_layers=architecture.n_layers, n_heads=architecture.n_heads, d_model=architecture.d_model,
        d_head=architecture.d_head, n_ctx=task.n_ctx, d_vocab=len(task.vocab), d_vocab_out=len(task.outputs),
        attn_only=True, normalization_type=None,
    )  # fmt: skip
    return {"HookedTransformer": timed(eager_loop(HookedTransformer(config), [], task, recipe))}


def eager_loop(model: torch.nn.Module, frozen: list[str], task: Task, recipe: Recipe) -> Iterator[None]:
    """AdamW as the notebooks wrote it; each turn is a step."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in frozen)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(trained, recipe.learning_rate, weight_decay=recipe.weight_decay)
    loss_function = torch.nn.CrossEntropyLoss()
    objective, rng = recipe.objective(task), np.random.default_rng([0, 1])
    positions = list(objective.loss_positions)
    while True:
        ids = task.sample(rng, 100 * recipe.batch_size)
        batches = torch.as_tensor(ids).split(recipe.batch_size)
        targets = torch.as_tensor(objective.target(ids)).split(recipe.batch_size)
        for batch, target in zip(batches, targets, strict=True):
            logits = model(batch)[:, positions]
            loss = loss_function(logits.reshape(-1, logits.shape[-1]), target.reshape(-1))
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            yield


def timed(loop: Iterator[None]) -> Callable[[], float]:
    next(loop)

    def run() -> float:
        began = time.perf_counter()
        for _ in range(STEPS):
            next(loop)
        return 1e3 * (time.perf_counter() - began) / STEPS

    return run


def eager_seconds_to(
    task: Task, recipe: Recipe, wanted: tuple[float, float], limit: float
) -> tuple[float, int | None]:
    """Seconds and steps of the published loop until an accuracy is reached; no steps if it is not within a limit.

    The looks at the accuracy, every 100 steps, are not counted.
    """
    model = HookedModel(untrained(recipe.architecture, task, 0))
    loop, seconds = eager_loop(model, model.cfg.frozen, task, recipe), 0.0
    for done in range(100, recipe.steps + 1, 100):
        began = time.perf_counter()
        for _ in range(100):
            next(loop)
        seconds += time.perf_counter() - began
        accuracy = task.accuracy(model)
        if accuracy.token >= wanted[0] and accuracy.sequence >= wanted[1]:
            return seconds, done
        if seconds > limit:
            break
    return seconds, None


def matmul_rate() -> float:
    """Floating-point operations per second of the machine's best matrix multiplication, of JAX's and PyTorch's."""
    n, best = 1_024, 0.0
    ours, theirs = jnp.ones((n, n)), torch.ones(n, n)
    multiply = jax.jit(jnp.matmul)
    for product in (lambda: jax.block_until_ready(multiply(ours, ours)), lambda: theirs @ theirs):
        product()
        for _ in range(10):
            began = time.perf_counter()
            product()
            best = max(best, 2 * n**3 / (time.perf_counter() - began))
    return best


if __name__ == "__main__":
    main()
