"""Digests of everything that a seed determines, so that a change of structure can be shown to change no figure.

    python tests/tools/digests.py            compare with what is recorded; exit code 1 where something differs
    python tests/tools/digests.py --record   record what there is now

Compiled weights are digested to the bit, whatever machine; trained weights and the figures of comparisons are only
the same on one machine, so the record of those says on which one it was made and is skipped on others.
"""

import argparse
import hashlib
import json
import platform
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

RECORD = Path(__file__).with_name("digests.json")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="record what there is now")
    parser.add_argument("--only", help="entries whose name begins so")
    arguments = parser.parse_args()
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    found = {"machine": machine()}
    for name, digest in entries(arguments.only or ""):
        found[name] = digest
        state = "same" if recorded.get(name) == digest else "new" if name not in recorded else "DIFFERS"
        print(f"{state:8}{name}", flush=True)
    if arguments.record:
        RECORD.write_text(json.dumps({**recorded, **found}, indent=1) + "\n")
        return 0
    names = [name for name in recorded if name != "machine" and name.startswith(arguments.only or "")]
    if recorded.get("machine") != found["machine"]:
        names = [name for name in names if name.startswith("compiled")]
    wrong = [name for name in names if found.get(name) != recorded[name]]
    print(f"{len(names) - len(wrong)} of {len(names)} are as recorded" + "".join(f"\n  {name}" for name in wrong))
    return bool(wrong)


def machine() -> str:
    """What floating-point results may depend on."""
    import jax
    import torch

    model = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "")
    versions = f"numpy {np.__version__}, torch {torch.__version__}, jax {jax.__version__}"
    return f"{platform.machine()} {model.partition(': ')[2]}, {versions}"


def of_arrays(*arrays: object) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        made = np.ascontiguousarray(array)
        digest.update(f"{made.shape} {made.dtype}".encode() + made.tobytes())
    return digest.hexdigest()[:16]


def of_model(transformer: object) -> str:
    weights = transformer.weights
    return of_arrays(transformer.mask, *(weights[name] for name in sorted(weights)))


def entries(prefix: str) -> Iterator[tuple[str, str]]:
    for kind in (compiled, trained, compressed, implementing, compared):
        if kind.__name__.startswith(prefix.partition(" ")[0]) or prefix.startswith(kind.__name__):
            yield from ((name, digest) for name, digest in kind() if name.startswith(prefix))


def compiled() -> Iterator[tuple[str, str]]:
    from rasplens.compile import compile_program
    from rasplens.compile.rasp.programs.catalogue import CATALOGUE
    from rasplens.tasks import TASKS, get_task

    warnings.simplefilter("ignore")
    for name, entry in CATALOGUE.items():
        for optimize in (True, False):
            for pad in (False, True):
                made = compile_program(
                    entry.build(), entry.vocab, entry.max_len, **dict(entry.options), optimize=optimize, pad=pad
                )
                yield f"compiled {name} optimize={optimize} pad={pad}", of_anatomy(made)
    for name in TASKS:
        task = get_task(name)
        for program, expression in task.programs.items():
            made = compile_program(expression, task.vocab, task.n_ctx, mask=task.visible)
            yield f"compiled task {name} {program}", of_anatomy(made)


def of_anatomy(made: object) -> str:
    parts = [of_model(made.transformer)]
    for name, variable in made.variables.items():
        parts += [name, repr(variable.values), of_arrays(variable.columns, variable.directions)]
        parts.append(variable.written_at)
    parts += [repr(dict(made.heads)), repr(dict(made.neurons))]
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


def trained() -> Iterator[tuple[str, str]]:
    from dataclasses import replace

    from rasplens.learned import RECIPES, train
    from rasplens.tasks import get_task

    for name in ("sort", "copy", "compression", "compression_notebook"):
        recipe = replace(RECIPES[name]["fast"], steps=120, warmup=20, batch_size=64)
        model = train(get_task(name), recipe, 3)
        history = [[report["loss"], report["token"]] for report in model.history]
        yield f"trained {name}", of_model(model.transformer) + of_arrays(history)


def compressed() -> Iterator[tuple[str, str]]:
    from dataclasses import replace

    from rasplens.compile import compile_program
    from rasplens.compile import programs as library
    from rasplens.learned import compress
    from rasplens.learned.compressor import RECIPES

    recipe = replace(RECIPES["fast"], steps=300, trial=60, warmup=20)
    made = compile_program(library.histogram(), "abc", 4)
    for width in (6, 8):
        model = compress(made, width, recipe, 1)
        yield f"compressed histogram {width}", of_arrays(model.projection, *(np.array(model.history).T))


def implementing() -> Iterator[tuple[str, str]]:
    from rasplens.compile import programs as library
    from rasplens.learned import SIITRecipe, ordinary_architecture, train_to_implement
    from rasplens.tasks import compile_for, task_from_program

    for name in ("induction", "histogram"):
        task = task_from_program(getattr(library, name)(), "abc", 5, causal=name == "induction")
        compiled = compile_for(task)
        recipe = SIITRecipe(steps=120, cycles=1, warmup=20)
        model = train_to_implement(compiled, task, ordinary_architecture(compiled, d_model=16), recipe, 2)
        least = np.array([*model.accuracy.least.values()])
        yield f"implementing {name}", of_model(model.transformer) + of_arrays(least)


def compared() -> Iterator[tuple[str, str]]:
    from rasplens.compile import compile_program, rasp
    from rasplens.compile import programs as library
    from rasplens.learned import load_pretrained
    from rasplens.model import disguise
    from rasplens.tasks import get_task, task_from_program

    task = task_from_program(library.reverse(), "abcd", 5)
    first = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == 0), rasp.tokens)
    same = rasp.SequenceMap(lambda x, y: x == y, rasp.tokens, first.named("first")).named("same_as_first")
    other = task_from_program(same, "abcd", 4)
    pairs = [("reverse with itself", task, library.reverse()), ("same_as_first with itself", other, same)]
    for name, asked, program in pairs:
        reference = compile_program(program, asked.vocab, asked.n_ctx, mask=asked.visible)
        yield from digests_of(name, _compare(reference, reference, asked, 120))
        model = compile_program(program, asked.vocab, asked.n_ctx, mask=asked.visible, optimize=False)
        yield from digests_of(f"{name}, plain", _compare(reference, model, asked, 120))
    yield "compared disguise", of_model(disguise(reference.transformer, 4, extra_width=2))
    for name in ("copy", "compression"):
        asked = get_task(name)
        program = next(iter(asked.programs.values()))
        reference = compile_program(program, asked.vocab, asked.n_ctx, mask=asked.visible)
        yield from digests_of(name, _compare(reference, load_pretrained(name), asked, 60))


def _compare(reference: object, model: object, task: object, n: int) -> object:
    from rasplens.compare import CompareConfig, compare

    return compare(reference, model, task=task, config=CompareConfig(n_inputs=n), seed=2)


def digests_of(name: str, found: object) -> Iterator[tuple[str, str]]:
    axes = [[axis.score, axis.low, axis.high] for axis in found.axes]
    verdict = [number for claim in found.verdict.all_claims for number in (claim.score, claim.low, claim.high)]
    yield f"compared {name}: axes", of_arrays(np.array(axes), np.array(verdict))
    answers = [found.verdict.answer, *sorted(map(str, found.verdict.variables.items()))]
    yield f"compared {name}: verdict", hashlib.sha256("|".join(answers).encode()).hexdigest()[:16]
    for table, frame in sorted(found.tables.items()):
        yield f"compared {name}: {table}", of_frame(frame)


def of_frame(frame: pd.DataFrame) -> str:
    """Of the numbers: names of columns are words, and words may change."""
    return of_arrays(*(frame[column].to_numpy(dtype=float) for column in frame.select_dtypes("number")))


if __name__ == "__main__":
    sys.exit(main())
