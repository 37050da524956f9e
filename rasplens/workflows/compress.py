"""`rasplens compress`: a compiled program in fewer directions, and what it kept."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rasplens import terminal
from rasplens.learned.compressor import CompressedModel, CompressionReport, compress_many
from rasplens.learned.compressor.evaluation import Evaluation, baseline, evaluate
from rasplens.learned.compressor.examples import examples
from rasplens.learned.compressor.recipe import get_recipe
from rasplens.output_files import Destination, check_state
from rasplens.progress import Rate, progress_bar
from rasplens.sources import Sizes, compile_source

HEADINGS = ["", "answers right", "inputs right", "loss", "layers' cosine", "layers' loss"]


@dataclass(frozen=True)
class CompressionRequest:
    """A program, and the compressed models that are made of it: one for each width and seed.

    Attributes:
        source: Where the program comes from; see `compile_source`.
        program: One of a task's, by name; its first by default.
        sizes: Of a program that does not bring its own.
        optimize: Whether it is compiled with the optimiser.
        widths: Of the residual stream.
        recipe: The name of the compression recipe.
        seeds: Of the compressions.
    """

    source: str
    program: str | None
    sizes: Sizes
    optimize: bool
    widths: tuple[int, ...]
    recipe: str
    seeds: tuple[int, ...]


def compress_and_show(wanted: CompressionRequest, to: Destination, json: bool) -> None:
    """Compresses a program, stores the models, and shows what they kept; an interrupted run goes on.

    Raises:
        RaspLensError: If there is no such program or recipe, or no place to write to.
    """
    get_recipe(wanted.recipe)
    paths = model_paths(to.path, wanted.widths, wanted.seeds)
    if len(paths) == 1:
        to.check_file("compressed.safetensors")
    to.check(*paths)
    state = to.path.with_suffix(".compression.safetensors")
    check_state(to, state)
    compiled = compile_source(wanted.source, wanted.program, wanted.sizes, wanted.optimize)
    rates: dict[tuple[int, int], Rate] = {}
    with progress_bar("trying first maps") as advance:

        def report(now: CompressionReport) -> None:
            losses = f"answers {now.output_loss:.4f}  layers {now.layer_loss:.4f}"
            rate = rates.setdefault((now.d, now.seed), Rate(now.of)).of(now)
            advance(f"d={now.d} seed {now.seed}  {losses}  {rate}", now.step, now.of)

        models = compress_many(
            compiled, wanted.widths, wanted.seeds, wanted.recipe, progress=report, state_path=state
        )
        on = examples(compiled)
        found: list[tuple[CompressedModel, Evaluation, Evaluation]] = []
        for model in models:
            advance(f"judging d={model.d}", len(found), len(models))
            found.append((model, evaluate(model, on), evaluate(baseline(model, on), on)))
    for model, path in zip(models, paths, strict=True):
        to.write(path, model.save)
    for left in (state, state.with_suffix(".jsonl")):  # the models have their histories
        left.unlink(missing_ok=True)
    if json:
        terminal.as_json([_values(path, *one) for path, one in zip(paths, found, strict=True)])
        return
    rows: list[list[object]] = []
    for model, ours, principal in found:
        name = f"d={model.d} seed {model.seed}"
        rows += [[name, *_cells(ours)], [f"  {model.d} principal components", *_cells(principal)]]
    inputs = "all" if on.exhaustive else "a sample of"
    terminal.table(f"{compiled!r}\non {inputs} {len(on.tokens):,} inputs", HEADINGS, rows)
    if len(models) == 1:
        features = found[0][1].features
        terminal.table("Features", list(features), features.to_numpy().tolist())
        variables = found[0][1].variables
        terminal.table("Variables that a layer writes", list(variables), variables.to_numpy().tolist())
    terminal.out.print(f"Models: {', '.join(map(str, paths))}")


def model_paths(out: Path, widths: Sequence[int], seeds: Sequence[int]) -> list[Path]:
    """Where the models go: several of them get their width and seed into the name."""
    members = [(d, seed) for d in widths for seed in seeds]
    if len(members) == 1:
        return [out]
    return [out.with_stem(f"{out.stem}_d{d}_seed{seed}") for d, seed in members]


def _cells(found: Evaluation) -> list[float]:
    return [found.token, found.sequence, found.output_loss, found.cosine, found.loss]


def _values(path: Path, model: CompressedModel, ours: Evaluation, principal: Evaluation) -> dict[str, Any]:
    return {
        "program": model.compiled.output,
        "D": len(model.projection),
        "d": model.d,
        "seed": model.seed,
        "recipe": None if model.recipe is None else asdict(model.recipe),
        "model": str(path),
        **ours.to_dict(),
        "principal_components": principal.to_dict(),
        "history": model.history,
    }
