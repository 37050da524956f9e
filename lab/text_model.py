"""A small language model, trained here: the characters of Python's documentation, as GPT-2 would read them.

python -m lab.text_model --model FILE        trains it, if it is not there, and says how well it does

It reads ASCII. Text has no control characters but the end of a line, so the ids of the others are free.
"""

import argparse
import pydoc_data.topics
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from lab.swept import RESULTS
from rasplens.learned import Recipe
from rasplens.learned.architecture import Architecture
from rasplens.learned.initialisation import untrained_like
from rasplens.learned.training.fit import adamw, cosine, stepwise
from rasplens.model import Config, Transformer, causal_mask, load, save
from rasplens.model.jax_forward import jax_forward
from rasplens.progress import progress_bar

MODEL = RESULTS / "text-model.safetensors"
"""Where it is kept."""

CONFIG = Config(
    n_layers=4,
    n_heads=4,
    d_model=96,
    d_head=24,
    d_mlp=384,
    n_ctx=64,
    d_vocab=128,
    d_vocab_out=128,
    activation="gelu_new",
    normalization="LN",
)

SPARE = [i for i in range(32) if i != ord("\n")]
"""Characters that no text has."""

HELD_OUT = 10
"""One part of so many of the text is scored on."""

RECIPE = Recipe(
    architecture=Architecture(n_layers=4, n_heads=4, d_model=96, d_head=24),
    steps=2_000,
    batch_size=32,
    learning_rate=2e-3,
    warmup=100,
    weight_decay=0.01,
)

CHUNK = 50
"""Steps between two reports."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=MODEL, help="where it is, or is to be")
    print(f"{loss(text_model(parser.parse_args().model)):.3f} nats a character of held-out text")


def text() -> tuple[np.ndarray, np.ndarray]:
    """The characters to train on, and those to score on."""
    pages = "\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    ids = np.array([ord(letter) for letter in pages if letter == "\n" or 32 <= ord(letter) < 127])
    return ids[: -len(ids) // HELD_OUT], ids[-len(ids) // HELD_OUT :]


def text_model(path: Path = MODEL, seed: int = 0) -> Transformer:
    """The model of a file; trained before, if there is none."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        save(_trained(seed), path, {"text": "pydoc_data.topics", "seed": seed})
    return load(path)


def loss(model: Transformer, n: int = 64) -> float:
    """The mean loss on held-out text, in nats a character."""
    _, scored = text()
    rows = scored[: n * CONFIG.n_ctx].reshape(n, -1)
    logits = model(rows[:, :-1])
    found = optax.softmax_cross_entropy_with_integer_labels(jnp.asarray(logits), jnp.asarray(rows[:, 1:]))
    return float(found.mean())


def _trained(seed: int) -> Transformer:
    start, (train, _) = untrained_like(CONFIG, causal_mask(CONFIG.n_layers, CONFIG.n_ctx), seed), text()
    logits, rng = jax_forward(CONFIG, start.mask), np.random.default_rng(seed)

    def mean_loss(weights: dict[str, jax.Array], rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        given = logits(weights, rows[:, :-1])
        found = optax.softmax_cross_entropy_with_integer_labels(given, rows[:, 1:]).mean()
        return found, found

    optimiser = adamw(RECIPE, cosine(RECIPE, RECIPE.steps), clip=1.0)
    chunk = jax.jit(lambda state, batches: jax.lax.scan(stepwise(mean_loss, optimiser), state, (batches,)))
    weights = {name: jnp.asarray(array) for name, array in start.weights.items()}
    state = weights, optimiser.init(weights)
    with progress_bar("text model") as advance:
        for step in range(0, RECIPE.steps, CHUNK):
            places = rng.integers(0, len(train) - CONFIG.n_ctx, (CHUNK, RECIPE.batch_size, 1))
            state, losses = chunk(state, train[places + np.arange(CONFIG.n_ctx)])
            advance(f"loss {losses[-1]:.3f}", step + CHUNK, RECIPE.steps)
    return Transformer(CONFIG, {name: np.asarray(array) for name, array in state[0].items()}, start.mask)


if __name__ == "__main__":
    main()
