"""Models of which it is known what program they implement, or that they implement none of some.

Compiled programs of the library and their disguises, random programs, models trained in the ordinary way, models
trained to implement a program, and models with a second mechanism beside a program's. A source has names, each of
which has models.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from lab.labelled.circuits import CIRCUITS, HARD
from lab.labelled.hidden_mechanisms import hidden_pairs, other_decides
from lab.labelled.random_programs import N_PROGRAMS, random_program
from lab.natural.interventions import Subject
from lab.natural.mechanisms import get_mechanism
from lab.natural.truth import labelled, material_of
from lab.natural.verdicts import MODELS as NATURAL
from lab.natural.verdicts import MOST_LAYERS, TRUTH
from lab.program_sets import SETS, compiled_task
from lab.siit import MODELS as SIIT
from lab.swept import add_arguments, chosen
from rasplens.compare.config import PRESETS, Preset
from rasplens.compare.subject.vocabulary import GivenVocabulary
from rasplens.compile import CompiledModel
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.errors import RaspLensError
from rasplens.learned import load_learned
from rasplens.model import disguise, load
from rasplens.model.transformer import AnyModel
from rasplens.sweeps import Job
from rasplens.tasks import Task, compile_for, task_from_program

MOST_SELECTORS = 3
"""Random programs with more selectors are left out."""

CONDITION = 10.0
"""Of the oblique change of basis of a disguise."""

SEEDS = (1, 2)
"""Of the naturally trained models; those of seed 0 were used in development."""


@dataclass(frozen=True, eq=False)
class KnownModel:
    """A model and what is known of it.

    Attributes:
        kind: What it is.
        model: The model.
        task: What it is asked.
        same: Programs that it implements.
        different: Programs that it does not implement.
        vocabulary: The model's vocabulary for the task, if it is not the task's own.
        label: Says of any other program whether the model does the same, without `rasplens.compare`: `"same"`,
            `"different"` or `"unknown"`. None where no such test is there.
    """

    kind: str
    model: AnyModel
    task: Task
    same: Sequence[CompiledModel] = ()
    different: Sequence[CompiledModel] = ()
    vocabulary: GivenVocabulary | None = None
    label: Callable[[CompiledModel], str] | None = None


@dataclass(frozen=True)
class Source:
    """Where models come from.

    Attributes:
        names: What there is.
        models: The models of a name.
        files: What they are read from.
    """

    names: Callable[[], Sequence[str]]
    models: Callable[[str], Iterator[KnownModel]]
    files: Callable[[str], Sequence[str]] = lambda name: ()


def _library(name: str) -> Iterator[KnownModel]:
    entry = CATALOGUE[name]
    task = task_from_program(
        entry.build(), entry.vocab, entry.max_len, causal=dict(entry.options).get("causal", False)
    )
    compiled = compile_for(task, entry.build())
    yield KnownModel("compiled", compiled, task, [compiled])
    disguised = disguise(compiled, seed=0, extra_width=3, basis="oblique", condition=CONDITION)
    yield KnownModel("disguised", disguised, task, [compiled])


def _random(name: str) -> Iterator[KnownModel]:
    program = random_program(int(name.removeprefix("random_")))
    compiled = compile_for(program.task(), program.program)
    if (n := len(compiled.heads)) > MOST_SELECTORS:
        raise RaspLensError(f"{n} selectors, where {MOST_SELECTORS} are the most.")
    yield KnownModel("compiled", compiled, program.task(), [compiled])


def _natural_labels() -> Mapping[str, list[Mapping[str, str]]]:
    """By the model's name, what is known of it and of each program."""
    found = json.loads(TRUTH.read_text())["models"]
    known = [one for one in found if one["seed"] in SEEDS and one["label"] in ("same", "different")]
    by_name = sorted(known, key=lambda one: str(one["model"]))
    return {name: list(of) for name, of in groupby(by_name, lambda one: str(one["model"]))}


def _natural(name: str) -> Iterator[KnownModel]:
    labels = _natural_labels()[name]
    mechanism = get_mechanism(labels[0]["mechanism"])
    compiled = {one["program"]: mechanism.compile(one["program"]) for one in labels}
    same, different = (
        [compiled[one["program"]] for one in labels if one["label"] == label] for label in ("same", "different")
    )
    short = [one for one in different if one.transformer.config.n_layers <= MOST_LAYERS]
    model = load_learned(_natural_file(name))

    def label(program: CompiledModel) -> str:
        return labelled(Subject.of(mechanism.task, model), material_of(program.program, mechanism.task))[0]

    yield KnownModel(labels[0]["shape"], load(_natural_file(name)), mechanism.task, same, short, label=label)


def _siit(name: str) -> Iterator[KnownModel]:
    programs_of, _, program = name.partition(":")
    task, compiled = compiled_task(programs_of, program)
    yield KnownModel(programs_of, load_learned(_siit_file(name)), task, [compiled])


def _natural_file(name: str) -> Path:
    """Where `lab.natural.train` keeps a model."""
    return NATURAL / f"{name}.safetensors"


def _siit_file(name: str) -> Path:
    """Where `lab.siit` keeps the model of a program."""
    programs_of, _, program = name.partition(":")
    return SIIT / f"{programs_of}-ordinary-seed=0" / f"{program}.safetensors"


def _hidden(name: str) -> Iterator[KnownModel]:
    for pair in hidden_pairs({**CIRCUITS, **HARD}[name]):
        if pair.same is not None:
            decides = (pair.reference, pair.same), (pair.alternative, other_decides(pair.kind))
            same, different = ([one for one, is_it in decides if is_it == wanted] for wanted in (True, False))
            kind = f"{pair.program}, {pair.kind}"
            yield KnownModel(kind, pair.model, pair.task, same, different, pair.vocabulary)


SOURCES: Mapping[str, Source] = {
    "library": Source(lambda: list(CATALOGUE), _library),
    "random": Source(lambda: [f"random_{number}" for number in range(N_PROGRAMS)], _random),
    "natural": Source(lambda: list(_natural_labels()), _natural, lambda name: [str(_natural_file(name))]),
    "siit": Source(
        lambda: [f"{of}:{name}" for of, entries in SETS.items() for name in entries],
        _siit,
        lambda name: [str(_siit_file(name))],
    ),
    "hidden": Source(lambda: list({**CIRCUITS, **HARD}), _hidden),
}
"""By the name of each source, its models."""


def add_source_arguments(parser: argparse.ArgumentParser, config: Preset) -> None:
    """Which models, and how they are judged, on the command line of a benchmark."""
    parser.add_argument("--sources", nargs="+", choices=list(SOURCES), default=["library"])
    parser.add_argument("--only", default="", help="names of the source, with commas")
    parser.add_argument("--first", type=int, help="so many names of each source")
    parser.add_argument("--config", choices=list(PRESETS), default=config, help="how much a judgement looks at")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--write", type=Path, help="the page to put the summary into")
    add_arguments(parser)


def jobs_of(run: str, arguments: argparse.Namespace) -> list[Job]:
    """A job for each name of the sources that are asked for."""
    asked = {"config": arguments.config, "seed": arguments.seed}
    return [
        Job(run, {"source": source, "name": name, **asked}, SOURCES[source].files(name))
        for source in arguments.sources
        for name in chosen(arguments.only, SOURCES[source].names(), "model")[: arguments.first]
    ]
