"""The comparison: the modules of this package, in the order in which they work."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations

from rasplens.compare.claims.catalogue import CLAIMS, claim_tables, examine
from rasplens.compare.claims.kind import Progress, unsaid
from rasplens.compare.comparison import Comparison
from rasplens.compare.config import CompareConfig, Preset, get_config
from rasplens.compare.descriptions import PART, descriptions
from rasplens.compare.descriptions import STAGES as DESCRIBED
from rasplens.compare.evidence.attention.kept_models import kept_models
from rasplens.compare.pairing.distinguishing import DistinguishingInputs, discriminate
from rasplens.compare.pairing.reference import reference_of
from rasplens.compare.ranking import Ranking
from rasplens.compare.report.findings import findings
from rasplens.compare.study import study_of
from rasplens.compare.subject.threads import few_threads
from rasplens.compare.subject.vocabulary import GivenVocabulary
from rasplens.compare.verdict.verdict import IMPLEMENTS, verdict
from rasplens.compile import CompiledModel, program_text
from rasplens.compile.rasp import SOp
from rasplens.errors import RaspLensError
from rasplens.model.transformer import AnyModel
from rasplens.tasks import Task, as_task

STAGES = (*(kind.name for kind in CLAIMS), *DESCRIBED)
"""The names that `progress` is called with, in order; a part has other claims, and no descriptions."""


def compare(
    reference: CompiledModel | SOp | str,
    learned: AnyModel,
    *,
    task: Task | str,
    config: CompareConfig | Preset = "standard",
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
    distinguishing: Mapping[str, DistinguishingInputs] | None = None,
    as_part: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Whether a learned model implements a program: its claims, tested, and evidence beside its controls.

    Args:
        reference: The compiled program; or an s-op, or the name of one of the task's programs, which is compiled.
        learned: A `LearnedModel`, `CompressedModel`, `Transformer`, `HookedModel`, `TransformerBridge`, a module
            from `adapt`, or another `CompiledModel`.
        task: What both are asked.
        config: How much to look at: a `CompareConfig`, or "quick", "standard" or "thorough".
        seed: Of the choice of inputs and of the controls.
        vocabulary: The learned model's vocabulary for the task, if it is not the task's own.
        distinguishing: By the name of an alternative program, inputs that tell it from the reference; `rank` finds
            them.
        as_part: Whether the program describes a part of the model. It is then judged where the model gives the
            program's answers, by how far interventions move its logits; what else the model reads is left open.
        progress: Called with each of the `STAGES` as it begins, and of long ones with each step (`effects: …`).

    Raises:
        RaspLensError: If the reference is no program, the learned side no model, or it does not fit the task.
    """
    task = as_task(task)
    compiled = reference_of(reference, task)
    begin = progress or unsaid
    with few_threads(compiled, learned):
        study = study_of(compiled, learned, task, get_config(config), seed, vocabulary, as_part, distinguishing)
        claims, evidence = examine(study, seed, begin)
        found = PART if as_part else descriptions(study, evidence, seed, begin)
    comparison = Comparison(
        task=task.name,
        program=compiled.output,
        program_text=program_text(compiled.program),
        about=compiled.program.annotations.get("about", ""),
        learned_origin=getattr(learned, "origin", type(learned).__name__),
        n_inputs=study.scored.n_drawn,
        seed=seed,
        accuracies=study.scored.accuracies(),
        axes=found.axes,
        verdict=verdict(claims),
        tables={
            name: table
            for name, table in {**claim_tables(evidence), **found.tables}.items()
            if len(table) or name in Comparison.ALWAYS
        },
        correlations=found.correlations,
        overlaps=found.overlaps,
        models=None if as_part else kept_models(study.scored),
        pairing=study.scored,
    )
    return replace(comparison, findings=tuple(findings(comparison)))


def rank(
    references: Sequence[CompiledModel | SOp | str],
    learned: AnyModel,
    *,
    task: Task | str,
    config: CompareConfig | Preset = "standard",
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
    as_part: bool = False,
    progress: Progress | None = None,
) -> Ranking:
    """Which of several programs a learned model implements; it is also asked on inputs that tell them apart.

    Args:
        references: The compiled programs; or s-ops, or names of the task's programs.
        learned: As for `compare`, like all that follows.
        task: What all are asked.
        config: How much to look at.
        seed: Of the choice of inputs and of the controls.
        vocabulary: The learned model's vocabulary for the task, if it is not the task's own.
        as_part: Whether the programs describe a part of the model.
        progress: Called with each of the `STAGES` of each comparison as it begins.

    Raises:
        RaspLensError: If there is no reference, one is no program, the learned side no model, or one does not
            fit the task.
    """
    task = as_task(task)
    programs = [reference_of(reference, task) for reference in references]
    if not programs:
        raise RaspLensError("rank needs at least one compiled program.")
    names = [program.output for program in programs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise RaspLensError(
            f"rank needs programs of different names; {twice[0]!r} occurs twice. Rename one with named()."
        )
    together = replace(get_config(config), comparisons=len(programs))
    apart = {
        (one.output, other.output): discriminate(one.program, other.program, task, seed=seed)
        for one, other in permutations(programs, 2)
    }
    comparisons = []
    for program in programs:
        distinguishing = {other: found for (one, other), found in apart.items() if one == program.output}
        comparisons.append(
            compare(
                program,
                learned,
                task=task,
                config=together,
                seed=seed,
                vocabulary=vocabulary,
                distinguishing=distinguishing,
                as_part=as_part,
                progress=progress,
            )
        )
    comparisons.sort(key=lambda one: -one.rank)
    implemented = [one.program for one in comparisons if one.verdict.answer == IMPLEMENTS]
    alike = tuple(_what_would_tell(*both, apart[both], task) for both in combinations(implemented, 2))
    return Ranking(tuple(comparisons), alike)


def _what_would_tell(first: str, second: str, found: DistinguishingInputs, task: Task) -> str:
    """A sentence on two programs that a model implements alike."""
    both = f"{first!r} and {second!r} are not told apart"
    if not len(found):
        return f"{both}: they give the same answers and read the same positions on every input that was tried."
    example = " ".join(map(str, task.sequences(found.ids[:1])[0]))
    if found.by == "attention":
        return f"{both}: they give the same answers, but read different positions on inputs such as {example}."
    return f"{both} on the task's inputs; inputs such as {example} would distinguish them."
