"""Trains the mechanisms' models, from nothing, and keeps them; run again, it goes on where it was.

    python -m lab.natural.train                              everything, breadth first
    python -m lab.natural.train --only induction,histogram   some mechanisms
    python -m lab.natural.train --copy-to FOLDER             puts each model there as well

A model is `runs/natural/<mechanism>-<shape>-<seed>.safetensors`. One below 99 % accuracy is kept too: that it was
not learned is a finding, and `truth.py` says so.
"""

import argparse
import itertools
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.natural.mechanisms import MECHANISMS, Mechanism, get_mechanism
from lab.swept import add_arguments, chosen, swept
from rasplens.learned import Architecture, LearnedModel, Recipe, load_learned, train_many
from rasplens.sweeps import Job
from rasplens.sweeps.job import Row

FOLDER = Path("runs/natural")
SEEDS = (0, 1, 2)
LEARNED_FROM = 0.99
"""Held-out token accuracy from which a model has learned its task."""


@dataclass(frozen=True)
class Shape:
    """The shape of a model, which varies: everything but the number of layers, and that by how many more."""

    n_heads: int
    d_mlp: int = 0
    normalization: str = "none"
    more_layers: int = 0

    def architecture(self, n_layers: int) -> Architecture:
        """The architecture of this shape for a mechanism that needs some layers."""
        return Architecture(
            n_layers=n_layers + self.more_layers,
            n_heads=self.n_heads,
            d_model=32,
            d_head=32 if self.n_heads == 1 else 16,
            d_mlp=self.d_mlp,
            normalization=self.normalization,
            bias=True,
        )


SHAPES: Mapping[str, Shape] = {
    "one": Shape(1),
    "one_mlp": Shape(1, d_mlp=64),
    "four": Shape(4),
    "four_mlp": Shape(4, d_mlp=64),
    "one_mlp_ln": Shape(1, d_mlp=64, normalization="LN"),
    "four_ln": Shape(4, normalization="LN"),
    "deeper": Shape(1, more_layers=1),
    "deeper_mlp": Shape(1, d_mlp=64, more_layers=1),
}
"""One head or four a layer; attention-only or with MLPs; without or with layer norm; with a layer to spare."""


def shapes_of(mechanism: Mechanism) -> list[str]:
    """The shapes a mechanism is trained in."""
    return [name for name, shape in SHAPES.items() if shape.d_mlp or mechanism.attention_only]


def recipe_of(mechanism: Mechanism, shape: str) -> Recipe:
    """How it is trained: always all steps, so that what is learned settles."""
    architecture = SHAPES[shape].architecture(mechanism.n_layers)
    steps = 2_000 if architecture.n_layers == 1 else 4_000
    return Recipe(
        architecture,
        batch_size=128,
        steps=steps,
        learning_rate=5e-3,
        weight_decay=0.05,
        b2=0.99,
        warmup=100,
        clip=1.0,
        stop_at=2.0,
    )


def model_name(mechanism: str, shape: str, seed: int) -> str:
    """The name of a model and its file."""
    return f"{mechanism}-{shape}-{seed}"


def plan(mechanisms: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Mechanisms and shapes, one shape of all mechanisms first."""
    rounds = [shapes_of(get_mechanism(name)) for name in mechanisms]
    for place in range(max(map(len, rounds), default=0)):
        yield from (
            (name, shapes[place]) for name, shapes in zip(mechanisms, rounds, strict=True) if place < len(shapes)
        )


def train_shape(name: str, shape: str, seeds: Sequence[int], folder: Path) -> dict[int, LearnedModel]:
    """The models of a mechanism and shape that are not kept yet, trained together and kept."""
    missing = [seed for seed in seeds if not (folder / f"{model_name(name, shape, seed)}.safetensors").exists()]
    if not missing:
        return {}
    mechanism = get_mechanism(name)
    state = folder / "states" / f"{model_name(name, shape, missing[0])}-{missing[-1]}.safetensors"
    state.parent.mkdir(parents=True, exist_ok=True)
    models = train_many(mechanism.task, recipe_of(mechanism, shape), missing, state_path=state)
    for seed, model in zip(missing, models, strict=True):
        model.save(folder / f"{model_name(name, shape, seed)}.safetensors")
    state.unlink()
    state.with_suffix(".jsonl").unlink()
    return dict(zip(missing, models, strict=True))


def trained(mechanism: str, shape: str, seeds: list[int], folder: str) -> list[Row]:
    """The accuracy of each model of a mechanism and shape, on held-out inputs; those that lack are trained."""
    train_shape(mechanism, shape, seeds, Path(folder))
    paths = {seed: Path(folder) / f"{model_name(mechanism, shape, seed)}.safetensors" for seed in seeds}
    models = {seed: load_learned(path) for seed, path in paths.items()}
    return [{"model_seed": seed, "accuracy": one.provenance["accuracy"]["token"]} for seed, one in models.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MECHANISMS), help="mechanisms, with commas")
    parser.add_argument("--shapes", default=",".join(SHAPES), help="shapes, with commas")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--copy-to", type=Path, help="a folder that every model is copied to")
    add_arguments(parser)
    arguments = parser.parse_args()
    mechanisms, shapes = chosen(arguments.only, MECHANISMS, "mechanism"), chosen(arguments.shapes, SHAPES, "shape")
    asked = [(name, shape) for name, shape in plan(mechanisms) if shape in shapes]
    same = {"seeds": list(arguments.seeds), "folder": str(arguments.folder)}
    jobs = [Job("lab.natural.train:trained", {"mechanism": n, "shape": s, **same}) for n, s in asked]
    found = swept(jobs, arguments)
    for why in found["error"].dropna():
        print(why)
    if found["error"].notna().all():
        raise SystemExit("No model was trained.")
    learned = found.assign(learned=found["accuracy"] >= LEARNED_FROM).groupby(["mechanism", "shape"], sort=False)
    print(
        learned.agg(
            learned=("learned", "sum"), lowest=("accuracy", "min"), seconds=("seconds", "first")
        ).to_string()
    )
    names = [f"{model_name(*one, seed)}.safetensors" for one, seed in itertools.product(asked, arguments.seeds)]
    there = [name for name in names if (arguments.folder / name).is_file()]
    if arguments.copy_to is not None:
        arguments.copy_to.mkdir(parents=True, exist_ok=True)
        for name in there:
            shutil.copy(arguments.folder / name, arguments.copy_to)
    if lacking := sorted(set(names) - set(there)):
        raise SystemExit(
            f"{arguments.folder} lacks {', '.join(lacking)}. If results are kept without their models, use "
            "another folder of --results."
        )


if __name__ == "__main__":
    main()
