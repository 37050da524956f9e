"""Which program each trained model implements, by intervention alone: nothing of `rasplens.compare` is used.

    python -m lab.natural.truth --folder runs/natural

writes `lab/natural/truth.json` and `docs/natural-models.md`. A program's steps are laid onto the model's
layers in every order that they allow; a program is judged by the layout that fits best. The tests of a layout:

- `rule`: every head's pattern is overwritten by the program's selectors. Where a head mostly attends to what a
  step selects, it gets exactly that; elsewhere, its mean over all inputs. (Only where values are read.)
- `levels`: the same, with the model's own weights: each score becomes its mean over all inputs on which the same
  steps select that edge. So what is selected may decide the pattern, and nothing else of the content. One of
  `rule` and `levels` must pass: a head with other weights, but always the same, does as the program says.
- `cut`: patterns stay, and the values along all edges that no step of the layer reads come from other inputs. A
  position's own edge is free, as the residual stream carries the same.
- `own_only`, `alone`: the controls. Values along all edges, or along those of one step, come from other inputs:
  accuracy must fall, or the tests before say nothing. (Only for steps whose values depend on the input.)
- `values`, `keys`, `both`, `queries`: along random edges of a step's layer, values or keys or both come from
  another input; or queries do, at random positions. The program says which answers change, and to what, and which
  stay; agreement is counted apart for the two. Answers that the task never gives to the token that stands there
  are left out.
- `…_class`: the lowest figure of a test within a class of answers: those with a token at a position, with one
  token at two positions, with an answer, read at a position or at a token, or with two of these. Here an answer
  counts that the task gives to other tokens only: where a token always has the same answer, a model may know it
  without the program.
- `spread`: where the model has layers to spare, a step may be done in several at once, of which no layout knows.
  So this is the lower of `cut` and `levels` with every step in every layer; unless it fails, none is different.
"""

import argparse
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import torch

from lab.natural.interventions import LayerEdit, Patch, Subject
from lab.natural.mechanisms import MECHANISMS, get_mechanism
from lab.natural.page import page
from lab.natural.predictions import CARRIED, KEYS, QUERIES, Predictions, Step, answers_asked
from lab.natural.train import FOLDER, LEARNED_FROM, SHAPES
from rasplens.compile.rasp import SOp
from rasplens.learned import load_learned
from rasplens.model import HasTransformer
from rasplens.tasks import Task

N_INPUTS = 1200
HOLDS, FAILS, CONTRADICTS = 0.95, 0.75, 0.5
"""A test passes from the first figure, and has failed up to the second; for keys, queries or values alone, which
may lead to states that the task never has, up to the third."""

FEWEST, FEWEST_OF_CLASS = 30, 40
"""Answers that an agreement needs to be counted over; with fewer the figure is left out. A class needs more, since
the lowest of many is taken."""

ON_TASK = ("attention", "cut", "both_changed", "both_kept")
OFF_TASK = tuple(f"{what}_{answers}" for what in ("values", "keys", "queries") for answers in ("changed", "kept"))
PASSES = (*ON_TASK, *OFF_TASK)
"""The figures that must be high; `attention` is the higher one of `rule` and `levels`."""

PATCHED = ("values", "keys", "both", "queries")

WITHIN = tuple(f"{test}_class" for test in ("attention", "cut", *PATCHED))
"""The figures within classes. A program that is right on average and fails in one is not what the model does."""

CONTROLS = ("own_only", "alone")
"""The figures that must be low."""

MOST_LAYERS = 3
"""Layers of a compiled program that is a control at most: there are too many layouts of more."""

Layout = tuple[int, ...]
"""The layer of each step of a program."""


@dataclass(frozen=True)
class Finding:
    """A finding on a model and a program.

    Attributes:
        model: The model's file, without its ending.
        mechanism: What it was trained on.
        shape: Its shape, see `train.py`.
        seed: Its seed.
        program: The program.
        label: `"same"`, `"different"`, `"unknown"`, or `"not learned"`.
        why: The figures that decide, in words.
        layout: The layer of each step in the layout that fits best; empty if there is none.
        figures: Every figure of that layout, in [0, 1]; one that could not be taken is None.
    """

    model: str
    mechanism: str
    shape: str
    seed: int
    program: str
    label: str
    why: str
    layout: Layout
    figures: Mapping[str, float | None]


@dataclass(frozen=True, eq=False)
class Material:
    """The inputs of the tests of one program, with all that the program says of them.

    Attributes:
        predictions: The program on bases and sources.
        others: Further inputs, whose values take the place of what should not matter.
        known: What the program was asked already.
    """

    predictions: Predictions
    others: np.ndarray
    known: dict[tuple[tuple[int, ...], str], np.ndarray]

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.predictions.steps

    @cached_property
    def carrying(self) -> tuple[bool, ...]:
        """Which steps read values that depend on the input."""
        return tuple(map(self.predictions.carries_content, self.steps))

    @cached_property
    def classes(self) -> np.ndarray:
        """The classes of each answer, before any two are taken: boolean `[input, loss_pos, class]`."""
        bases, task = self.predictions.bases, self.predictions.task
        read, target = list(task.loss_positions), task.target(self.predictions.bases)
        by_token = np.eye(len(task.vocab), dtype=bool)[bases]
        by_input = np.repeat(by_token.reshape(len(bases), 1, -1), len(read), axis=1)
        by_position = np.broadcast_to(np.eye(len(read), dtype=bool), (len(bases), len(read), len(read)))
        by_answer = np.eye(len(task.outputs), dtype=bool)[target]
        equal = (bases[:, :, None] == bases[:, None])[:, *np.triu_indices(task.n_ctx, 1)]
        by_equals = np.repeat(equal[:, None], len(read), axis=1)
        return np.concatenate([by_input, by_token[:, read], by_position, by_answer, by_equals], axis=-1)

    def answers(self, steps: tuple[int, ...], of_source: str) -> np.ndarray:
        """Return the program's answers with some of these of some steps patched; computed once."""
        if (steps, of_source) not in self.known:
            chosen = [self.steps[i] for i in steps]
            self.known[steps, of_source] = self.predictions.answers(chosen, of_source)
        return self.known[steps, of_source]


@cache
def material(mechanism: str, program: str) -> Material:
    """The material of a program; the same inputs and edges for every model."""
    task = get_mechanism(mechanism).task
    return material_of(task.programs[program], task)


def material_of(program: SOp, task: Task) -> Material:
    """The material of any program for a task."""
    rng = np.random.default_rng(7)
    bases, sources, others = (task.draw(rng, N_INPUTS) for _ in range(3))
    edges = draw_edges(rng, N_INPUTS, task.n_ctx)
    rows = draw_rows(rng, N_INPUTS, task.n_ctx)
    predictions = Predictions(program, task, bases, sources, edges, rows, answers_asked(task))
    return Material(predictions, others, {})


def draw_edges(rng: np.random.Generator, n: int, length: int) -> np.ndarray:
    """Edges, never a position's own: by turns all, a random half, and those from one key."""
    half = rng.random((n, length, length)) < 0.5
    one = np.broadcast_to((np.arange(length) == rng.integers(0, length, (n, 1)))[:, None, :], half.shape)
    kind = (np.arange(n) % 3)[:, None, None]
    return np.where(kind == 0, True, np.where(kind == 1, half, one)) & ~np.eye(length, dtype=bool)


def draw_rows(rng: np.random.Generator, n: int, length: int) -> np.ndarray:
    """Positions whose queries are patched: by turns all, a random half, and one."""
    half = rng.random((n, length)) < 0.5
    one = np.arange(length) == rng.integers(0, length, (n, 1))
    kind = (np.arange(n) % 3)[:, None]
    return np.where(kind == 0, True, np.where(kind == 1, half, one))


def layouts(steps: Sequence[Step], n_layers: int) -> Iterator[Layout]:
    """The ways to lay steps onto layers, deeper ones strictly later."""
    for layout in itertools.product(range(n_layers), repeat=len(steps)):
        pairs = itertools.combinations(zip(steps, layout, strict=True), 2)
        if all(layer < later for (step, layer), (deeper, later) in pairs if step.depth < deeper.depth):
            yield layout


@dataclass(frozen=True, eq=False)
class Trial:
    """A model, a program and a layout, ready to be tested."""

    subject: Subject
    material: Material
    layout: Layout
    on_bases: Mapping[tuple[int, str], torch.Tensor]
    on_sources: Mapping[tuple[int, str], torch.Tensor]
    on_others: Mapping[tuple[int, str], torch.Tensor]

    @property
    def layers(self) -> range:
        return range(self.subject.n_layers)

    @property
    def bases(self) -> np.ndarray:
        return self.material.predictions.bases

    @property
    def not_own(self) -> np.ndarray:
        length = self.subject.offset + self.bases.shape[1]
        return np.broadcast_to(~np.eye(length, dtype=bool), (len(self.bases), length, length))

    @cached_property
    def selected(self) -> tuple[np.ndarray, ...]:
        return tuple(self._padded(selected) for selected in self.material.predictions.selected)

    def _padded(self, edges: np.ndarray) -> np.ndarray:
        """Edges among all positions of the model, a BOS included."""
        before = (self.subject.offset, 0)
        return np.pad(edges, ((0, 0), before, before))

    def in_layer(self, layer: int) -> tuple[int, ...]:
        """The steps that are laid onto a layer."""
        return tuple(i for i, place in enumerate(self.layout) if place == layer)

    def figures(self) -> dict[str, float | None]:
        """Every figure of the layout."""
        levels = self._levelled()
        rule = self._ruled()
        attention = levels if rule is None or levels.mean() > rule.mean() else rule
        cut = self._without({layer: self.not_own & ~self._read(layer) for layer in self.layers})
        return {
            "accuracy": float(self.subject.right(self.bases).mean()),
            "rule": None if rule is None else float(rule.mean()),
            "levels": float(levels.mean()),
            "attention": float(attention.mean()),
            "attention_class": self._lowest(attention),
            "cut": float(cut.mean()),
            "cut_class": self._lowest(cut),
            "own_only": self._own_only(),
            "alone": self._alone(),
            **{name: figure for what in PATCHED for name, figure in self._agreement(what).items()},
            "spread": self._spread(),
        }

    def _lowest(self, agrees: np.ndarray, where: np.ndarray | None = None) -> float | None:
        """The lowest agreement in a class, or in what two have in common; None if all have few answers."""
        where = np.ones_like(agrees) if where is None else where
        classes = self.material.classes[where].astype(np.float64)
        count, right = classes.T @ classes, classes.T @ (classes * agrees[where][:, None])
        enough = count >= FEWEST_OF_CLASS
        return float((right[enough] / count[enough]).min()) if enough.any() else None

    def _read(self, layer: int) -> np.ndarray:
        """The edges along which some aggregate of a layer reads a value."""
        reading = [self.selected[i] for i in self.in_layer(layer) if not self.material.steps[i].counts]
        return np.logical_or.reduce([np.zeros_like(self.not_own), *reading])

    def _without(self, edges: Mapping[int, np.ndarray]) -> np.ndarray:
        """Which answers are right with the values along some edges taken from other inputs."""
        edits = {
            layer: LayerEdit(values=Patch(torch.as_tensor(along.copy()), self.on_others[layer, "v"]))
            for layer, along in edges.items()
        }
        return self.subject.right(self.bases, edits)

    def _spread(self) -> float | None:
        """The lower of `cut` and `levels` if every layer may do every step; None without layers to spare."""
        if self.subject.n_layers == max(step.depth for step in self.material.steps):
            return None
        none = np.zeros_like(self.not_own)
        carried = zip(self.material.steps, self.selected, strict=True)
        read = np.logical_or.reduce([none, *(edges for step, edges in carried if not step.counts)])
        cut = self._without(dict.fromkeys(self.layers, self.not_own & ~read))
        edits = {
            layer: LayerEdit(pattern=by_membership(self.on_bases[layer, "attn_scores"], self.selected))
            for layer in self.layers
        }
        return float(min(cut.mean(), self.subject.right(self.bases, edits).mean()))

    def _own_only(self) -> float | None:
        """Accuracy with the values along all edges taken from other inputs; None if the program reads no value."""
        if not any(self.material.carrying):
            return None
        return float(self._without(dict.fromkeys(self.layers, self.not_own)).mean())

    def _alone(self) -> float | None:
        """The highest accuracy with the values of a single step taken from other inputs."""
        found = [
            float(self._without({layer: self.selected[i] & self.not_own}).mean())
            for i, layer in enumerate(self.layout)
            if self.material.carrying[i]
        ]
        return max(found, default=None)

    def _agreement(self, of_source: str) -> dict[str, float | None]:
        """The lowest agreement with the program over the layers: of answers that change, of others, in a class."""
        found = [self._agreement_in(layer, of_source) for layer in sorted(set(self.layout))]
        names = (f"{of_source}_changed", f"{of_source}_kept", f"{of_source}_class")
        return {
            name: min((figure for figure in figures if figure is not None), default=None)
            for name, figures in zip(names, zip(*found, strict=True), strict=True)
        }

    def _agreement_in(self, layer: int, of_source: str) -> tuple[float | None, float | None, float | None]:
        edges = torch.as_tensor(self._padded(self.material.predictions.edges))
        rows = np.pad(self.material.predictions.rows, ((0, 0), (self.subject.offset, 0)))
        whole = torch.as_tensor(rows)[..., None].expand(edges.shape)
        parts = (("keys", "k", edges, KEYS), ("queries", "q", whole, QUERIES), ("values", "v", edges, CARRIED))
        taken = {
            name: Patch(along, self.on_sources[layer, point])
            for name, point, along, of in parts
            if of_source in of
        }
        got = self.subject.answers(self.bases, {layer: LayerEdit(**taken)})
        said = self.material.answers(self.in_layer(layer), of_source)
        before = self.subject.task.target(self.bases)
        agrees, changed, kept = got == said, said != before, said == before
        asked, given = self.material.predictions.is_asked(said), self.material.predictions.is_given(said)
        within = [self._lowest(agrees, given & which) for which in (changed, kept)]
        lowest = min((figure for figure in within if figure is not None), default=None)
        return _share(agrees, asked & changed), _share(agrees, asked & kept), lowest

    def _ruled(self) -> np.ndarray | None:
        """Which answers are right with the program's patterns in every layer; None if some step only counts."""
        if any(step.counts for step in self.material.steps):
            return None
        edits = {}
        for layer in self.layers:
            own = self.on_bases[layer, "pattern"]
            pattern = own.mean(dim=0, keepdim=True).expand_as(own)
            for i in self.in_layer(layer):
                pattern = by_selection(own, torch.as_tensor(self.selected[i]), pattern)
            edits[layer] = LayerEdit(pattern=pattern)
        return self.subject.right(self.bases, edits)

    def _levelled(self) -> np.ndarray:
        """Which answers are right if nothing but what its steps select decides the pattern of a layer."""
        edits = {}
        for layer in self.layers:
            selectors = [self.selected[i] for i in self.in_layer(layer)]
            edits[layer] = LayerEdit(pattern=by_membership(self.on_bases[layer, "attn_scores"], selectors))
        return self.subject.right(self.bases, edits)


def by_selection(own: torch.Tensor, selected: torch.Tensor, otherwise: torch.Tensor) -> torch.Tensor:
    """A pattern that is uniform over what is selected, in the heads and at the queries that mostly attend there.

    Args:
        own: The model's pattern, `[input, head, query, key]`.
        selected: Boolean `[input, query, key]`.
        otherwise: The pattern of other heads and queries. Where nothing is selected, the model's own stays.
    """
    share = selected[:, None].float()
    some = share.sum(dim=-1, keepdim=True) > 0
    mass = (own * share).sum(dim=-1, keepdim=True)
    mean_mass = (mass * some).sum(dim=0) / some.sum(dim=0).clamp(min=1)
    uniform = torch.where(some, share / share.sum(dim=-1, keepdim=True).clamp(min=1), own)
    return torch.where(mean_mass > 0.5, uniform, otherwise)


def by_membership(scores: torch.Tensor, selectors: Sequence[np.ndarray]) -> torch.Tensor:
    """The pattern in which each score is its mean over the inputs whose selectors agree on that edge.

    Args:
        scores: The model's, `[input, head, query, key]`; minus infinity where the mask hides a key.
        selectors: Boolean `[input, query, key]`, one for each step of the layer.
    """
    code = torch.zeros_like(scores[:, 0], dtype=torch.long)
    for i, selected in enumerate(selectors):
        code += torch.as_tensor(selected).long() << i
    finite = torch.where(torch.isfinite(scores), scores, torch.zeros_like(scores))
    result = scores.clone()
    for value in range(1 << len(selectors)):
        member = (code == value)[:, None].float()
        mean = (finite * member).sum(dim=0) / member.sum(dim=0).clamp(min=1)
        result = torch.where((member > 0) & torch.isfinite(scores), mean, result)
    return result.softmax(dim=-1).nan_to_num()


def _share(right: np.ndarray, where: np.ndarray) -> float | None:
    return float(right[where].mean()) if where.sum() >= FEWEST else None


def fit(figures: Mapping[str, float | None]) -> float:
    """How well a layout fits: the lowest figure that should be high."""
    return min(figure for name in PASSES if (figure := figures[name]) is not None)


def judge(figures: Mapping[str, float | None]) -> tuple[str, str]:
    """The label of a model and program by the figures of the layout that fits best, and why.

    same: every test that could be taken passes and fails in no class, some answer was predicted to change, and
    every control falls.
    different: a test fails, or the values of a step can be replaced at no loss. Where the model has layers to
    spare, it must also fail if every layer may do every step.
    unknown: what is between.
    """
    if figures["accuracy"] < LEARNED_FROM:
        return "not learned", f"accuracy {figures['accuracy']:.3f}"
    known = {name: figure for name, figure in figures.items() if figure is not None}
    failed = [name for name in ON_TASK if known.get(name, 1.0) <= FAILS]
    failed += [name for name in OFF_TASK if known.get(name, 1.0) <= CONTRADICTS]
    failed += ["alone"] if known.get("alone", 0.0) >= HOLDS else []
    if failed and known.get("spread", 0.0) > FAILS:
        return "unknown", _named(["spread", *failed], known)
    if failed:
        return "different", _named(failed, known)
    short = [name for name in PASSES if known.get(name, 1.0) < HOLDS]
    short += [name for name in WITHIN if known.get(name, 1.0) <= FAILS]
    short += [name for name in CONTROLS if known.get(name, 0.0) > FAILS]
    if short:
        return "unknown", _named(short, known)
    if all(figures[f"{what}_changed"] is None for what in ("values", "keys")):
        return "unknown", "no answer was predicted to change"
    return "same", "every test"


def _named(names: Sequence[str], figures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {figures[name]:.2f}" for name in names)


def study(path: Path) -> list[Finding]:
    """The findings of a stored model, one for each of its mechanism's programs."""
    mechanism, shape, seed = path.stem.rsplit("-", 2)
    return findings_of(mechanism, load_learned(path), path.stem, shape, int(seed))


def compiled_controls(mechanism: str) -> list[Finding]:
    """The findings of each of a mechanism's programs, compiled: what is true of them is known."""
    compiled = {name: get_mechanism(mechanism).compile(name) for name in get_mechanism(mechanism).programs}
    return [
        finding
        for name, model in compiled.items()
        if model.transformer.config.n_layers <= MOST_LAYERS
        for finding in findings_of(mechanism, model, f"{mechanism}-compiled-{name}", "compiled", 0)
    ]


def findings_of(mechanism: str, model: HasTransformer, name: str, shape: str, seed: int) -> list[Finding]:
    """Return the findings on a model, one for each of its mechanism's programs."""
    subject = Subject.of(get_mechanism(mechanism).task, model)
    found = []
    for program in get_mechanism(mechanism).programs:
        label, why, figures, layout = labelled(subject, material(mechanism, program))
        found.append(Finding(name, mechanism, shape, seed, program, label, why, layout, figures))
    return found


def labelled(subject: Subject, of_program: Material) -> tuple[str, str, dict[str, float | None], Layout]:
    """The label of a program on a model, why, and the figures of the layout that fits best."""
    figures, layout = best_layout(subject, of_program)
    label, why = judge(figures)
    if not layout and label != "not learned":
        label, why = "different", "more steps than layers"
    return label, why, figures, layout


def best_layout(subject: Subject, of_program: Material) -> tuple[dict[str, float | None], Layout]:
    """The figures of the layout that fits best, and the layout; accuracy alone and none if none is possible."""
    inputs = (of_program.predictions.bases, of_program.predictions.sources, of_program.others)
    seen = [subject.observe(ids) for ids in inputs]
    tried = [
        (Trial(subject, of_program, layout, *seen).figures(), layout)
        for layout in layouts(of_program.steps, subject.n_layers)
    ]
    if not tried:
        return dict.fromkeys(PASSES) | {"accuracy": float(subject.right(inputs[0]).mean())}, ()
    return max(tried, key=lambda one: fit(one[0]))


def report(finding: Finding) -> str:
    """A finding in one line."""
    shown = " ".join(f"{name}={figure:.2f}" for name, figure in finding.figures.items() if figure is not None)
    return f"{finding.model} {finding.program}: {finding.label} ({finding.why}) {finding.layout} {shown}"


def order(path: Path) -> tuple[int, int, str]:
    """Models in the order of mechanisms and shapes."""
    mechanism, shape, seed = path.stem.rsplit("-", 2)
    return list(MECHANISMS).index(mechanism), list(SHAPES).index(shape), seed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--only", help="mechanisms, with commas; then nothing is written")
    parser.add_argument("--out", type=Path, default=Path("lab/natural/truth.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/natural-models.md"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    paths = sorted(arguments.folder.glob("*.safetensors"), key=order)
    if arguments.only:
        paths = [path for path in paths if path.stem.rsplit("-", 2)[0] in arguments.only.split(",")]
    findings = [finding for path in paths for finding in _shown(study(path))]
    if not arguments.only:
        controls = [finding for name in MECHANISMS for finding in _shown(compiled_controls(name))]
        rounded = [
            [asdict(one) | {"figures": _rounded(one.figures)} for one in part] for part in (findings, controls)
        ]
        content = dict(zip(("models", "controls"), rounded, strict=True))
        arguments.out.write_text(as_lines(content))
        before = arguments.page.read_text() if arguments.page.exists() else ""
        arguments.page.write_text(page(*rounded, before))


def as_lines(content: Mapping[str, Sequence[object]]) -> str:
    """The findings as JSON, one a line."""
    lists = (
        f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, part)) + "\n]" for name, part in content.items()
    )
    return "{\n" + ",\n".join(lists) + "\n}\n"


def _shown(findings: list[Finding]) -> list[Finding]:
    """The findings, printed on their way."""
    for finding in findings:
        print(report(finding), flush=True)
    return findings


def _rounded(figures: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if figure is None else round(figure, 4) for name, figure in figures.items()}


if __name__ == "__main__":
    main()
