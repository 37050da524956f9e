"""The numbers of a comparison in plain sentences, generated from nothing but them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rasplens.compare.claims.answers import ALL
from rasplens.compare.comparison import Comparison
from rasplens.compare.report.ablation_findings import ablation_sentences
from rasplens.compare.report.sentences import CLEARLY, axis_sentence, p_value, percent, quoted, table
from rasplens.compare.report.subspace_findings import overlap_sentences, subspace_sentences
from rasplens.compare.verdict.headline import headline

ILLUSORY = 0.05
"""An interchange whose active part scores lower by this much is said to need other directions."""


METHODS = {
    "component": "the whole component",
    "linear map": "subspace of the linear map",
    "DAS": "subspace learned by DAS",
}


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of the findings, and the part of the report that shows it.

    Attributes:
        about: The name of a section of the report.
        sentences: What is said; the first one sums up the rest.
    """

    about: str
    sentences: tuple[str, ...]


def findings(comparison: Comparison) -> list[str]:
    """The verdict, a paragraph on each axis, and one on variables that share a subspace, if any do."""
    return [" ".join(paragraph.sentences) for paragraph in paragraphs(comparison)]


def paragraphs(comparison: Comparison) -> list[Paragraph]:
    """The findings, each with what it is about."""
    said: dict[str, Callable[[Comparison], list[str]]] = {"evidence": _verdict, "effects": _effects}
    described: dict[str, Callable[[Comparison], list[str]]] = {
        "behaviour": _behaviour,
        "interchange": _interchange,
        "attention": _attention,
        "ablation": ablation_sentences,
        "subspaces": subspace_sentences,
        "overlaps": overlap_sentences,
    }
    said |= described if comparison.axes else {}  # of a part nothing is described
    made = [Paragraph(about, tuple(say(comparison))) for about, say in said.items()]
    return [paragraph for paragraph in made if paragraph.sentences]


def _verdict(comparison: Comparison) -> list[str]:
    verdict = comparison.verdict
    said = headline(comparison.program, verdict).sentence
    levels = ", ".join(f"same {level} ({answer})" for level, answer in verdict.levels.items())
    return [
        f"On the task {comparison.task!r}, {said[0].lower()}{said[1:]}",
        f"By level: {levels}.",
        *verdict.reasons,
    ]


def _effects(comparison: Comparison) -> list[str]:
    """The heads of a part, by what they gather."""
    found, sentences = table(comparison, "part_heads"), list[str]()
    for variable, rows in found.groupby("variable", sort=False) if len(found) else ():
        heads = [f"{row.head} ({row.effect:.2f}, attention {row.attention:.2f})" for row in rows.itertuples()]
        uniform = rows["uniform"].iloc[0]
        sentences.append(
            f"What {variable!r} gathers is carried by {', '.join(heads)}: the effect of each alone, and its "
            f"attention on the selector's edges, where uniform attention has {uniform:.2f}."
        )
    return sentences


def _behaviour(comparison: Comparison) -> list[str]:
    learned, untrained = comparison.accuracies["learned"], comparison.accuracies["untrained"]
    compiled = comparison.accuracies["compiled"]
    sentences = [
        axis_sentence(comparison, "behaviour"),
        f"On {comparison.n_inputs:,} held-out inputs the learned model gets {percent(learned.token)} of the "
        f"answers right, and all answers on {percent(learned.sequence)} of the inputs; the compiled program "
        f"{percent(compiled.token)} and {percent(compiled.sequence)}; an untrained model "
        f"{percent(untrained.token)} of the answers.",
    ]
    if (generated := comparison.accuracies.get("generated")) is not None:
        sentences.append(
            f"When it reads its own answers instead of the right ones, the learned model gets "
            f"{percent(generated.token)} of them right, and all answers on {percent(generated.sequence)} of the "
            "inputs."
        )
    kinds = [
        f"{percent(row.agreement)} on {row.n:,} {_kind(row.inputs)} (untrained {percent(row.untrained)})"
        for row in table(comparison, "behaviour").itertuples()
        if row.n
    ]
    if kinds:
        sentences.append(f"Its answers agree with the program's: {'; '.join(kinds)}.")
    return sentences


def _kind(inputs: str) -> str:
    """Return a noun for inputs, by their name in the behaviour table."""
    alternative = inputs.removeprefix("against ")
    if alternative != inputs:
        return f"inputs that distinguish it from {alternative!r}"
    return "inputs, all that there are" if inputs == ALL else f"{inputs.replace(' ', '-')} inputs"


def _interchange(comparison: Comparison) -> list[str]:
    sentences = [axis_sentence(comparison, "interchange")]
    for row in table(comparison, "interchange").itertuples():
        controls = f"untrained model {row.untrained:.2f}, full-stream patching {row.full_stream:.2f}"
        if row.method != "component":  # of which there are no random ones
            controls = f"random subspaces of the same rank {row.random:.2f}, {controls}"
        sentences.append(
            f"Interchanging {row.variable!r} at {row.point} ({METHODS[row.method]}, {row.pairs} pairs) scores "
            f"{row.score:.2f}. Controls: {controls}." + _illusion(row)
        )
    return sentences


def _illusion(row: Any) -> str:
    """Return a sentence on an interchange that needs directions along which its variable moves nothing."""
    if (
        row.method == "component"
        or row.score - max(row.random, row.untrained) <= CLEARLY
        or row.score - row.active < ILLUSORY
    ):
        return ""
    return (
        f" Along the directions that the variable moves and the model reads, it scores only {row.active:.2f}: the "
        "rest may go through a pathway that is otherwise dormant."
    )


def _attention(comparison: Comparison) -> list[str]:
    found = table(comparison, "attention")
    sentences = [axis_sentence(comparison, "attention")]
    if found.empty:
        return sentences
    matched = found[found["matched"]]
    for row in matched.sort_values("input_dependence", ascending=False).itertuples():
        sentences.append(
            f"The compiled head for {row.variable!r} is matched with the learned L{row.layer}H{row.head}: "
            f"similarity {row.similarity:.2f}. Controls: rows of other inputs {row.shuffled:.2f} "
            f"({p_value(row.p)}), most similar head of an untrained model {row.untrained:.2f}."
            + _concordance(row.concordance)
        )
    heads = found.groupby(["compiled_layer", "compiled_head"])
    if unmatched := sorted(set(heads["variable"].first()[~heads["matched"].any()])):
        sentences.append(f"No learned head is matched with the compiled heads for {quoted(unmatched)}.")
    for row in table(comparison, "shared_heads").itertuples():
        sentences.append(
            f"{row.learned} together attend more like the head for {row.compiled!r} than either alone: similarity "
            f"rises by {row.gain:.2f}."
            if row.kind == "split"
            else f"{row.learned} is the most similar head for each of {row.compiled}."
        )
    return sentences


def _concordance(found: float) -> str:
    if math.isnan(found):
        return " The compiled head's attention is the same on all inputs."
    return f" The concordance of their changes over inputs is {found:.2f}."
