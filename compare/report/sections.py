"""The parts of a report: what each shows, and what is said of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rasplens.compare.evidence.ablation.measurement import METHODS


@dataclass(frozen=True)
class Section:
    """A part of the page; it is left out where there is nothing to show in it.

    Attributes:
        name: Its anchor; findings refer to it.
        title: Its heading.
        text: What it shows, in a sentence.
        how: How that was measured; folded away.
        figures: The figures in it, by their names.
        tables: The tables, by their names.
        tabs: By the title of a tab, the figures in it.
    """

    name: str
    title: str
    text: str
    how: str = ""
    figures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    tabs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


SECTIONS = (
    Section(
        "claims",
        "Claims",
        "What the program claims of the model, each claim with its status and its 95 % interval.",
        "The verdict is their conjunction: no claim pays for another. A claim holds if its interval lies right of "
        "the grey band, and fails if it lies left of it. Answers have to agree more closely.",
        ("claims",),
        ("claims",),
    ),
    Section(
        "where",
        "Variables and heads",
        "Where each variable and each head of the program was found in the learned model.",
        "A variable is placed by interchange interventions, at the hook point where they work best. A compiled "
        "head is matched with the learned head that attends most like it. A row opens its evidence.",
    ),
    Section(
        "routes",
        "Routes",
        "Which answers change when parts of attention edges are patched from another input.",
        "The parts are values, keys, queries, or the attention itself, in all layers and heads at once. The "
        "compiled model, patched alike, says which answers must change and which must stay. The shares that do "
        "are shown beside their controls.",
        (),
        ("routes",),
    ),
    Section(
        "evidence",
        "Evidence",
        "Five axes describe the models on one scale, from what the controls reach (0) to the compiled model (1).",
        "Bars are 95 % intervals over inputs; models and sites stay.",
        ("evidence",),
        ("axes",),
    ),
    Section(
        "behaviour",
        "Behaviour",
        "How often the learned model answers as the program does.",
        "Inputs are held-out ones, those that distinguish alternative programs, and out-of-distribution ones "
        "(independent tokens). Inputs outside the task are reported and not counted.",
        (),
        ("behaviour", "examples"),
    ),
    Section(
        "program",
        "Program graph",
        "The expressions of the reference program, each right of what it reads; selectors are diamonds.",
        "",
        ("program",),
    ),
    Section(
        "interchange",
        "Interchange interventions",
        "A variable's subspace of the learned residual stream is patched from another input.",
        "IIA is the share of the answers that must change and are then the program's. Specificity is "
        "the share of the other answers that stay right. The score is the smaller of the two. The controls are "
        "full-stream patching, random subspaces of the same rank, and an untrained model. The active part "
        "is what the model reads and the variable itself moves: where its score is lower, the interchange may be "
        "an illusion.",
        ("interchange",),
        ("interchange",),
    ),
    Section(
        "attention",
        "Attention",
        "Every compiled head beside the learned head that it is matched with.",
        "Scores are 1 minus the Jensen-Shannon divergence in bits, on the compiled head's active query rows; "
        "shuffled compares with another input's rows, and input dependence is what is left above "
        "that. Concordance (Lin 1989) says how closely attention changes over inputs with the compiled "
        "head's, also on its inactive query rows. The axis is the smaller of similarity (above uniform attention) "
        "and concordance, of the worst head.",
        ("attention",),
        ("attention", "shared_heads"),
    ),
    Section(
        "ablation",
        "Ablation",
        "How far token accuracy drops without a head, or without an attention edge.",
        "Zero ablation sets a head's output to zero, mean ablation to its mean over inputs, "
        "resample ablation to that of another input. An edge is the attention of all heads of a layer from "
        "one query to one key. Its row keeps its proportions otherwise. The maps show the largest effect over "
        "layers; blank edges get no attention. An effect is a lower bound where other parts repair the damage.",
        ("heads",),
        (
            *(f"{name}_{side}" for name in ("heads", "head_positions", "joint", "edges")
              for side in ("compiled", "learned")),
            "neurons_learned",
            "matched_profiles",
        ),
        {method: (f"edges_{method}", f"head_positions_{method}") for method in METHODS},
    ),
    Section(
        "subspaces",
        "Residual subspaces",
        "Where a linear probe reads each variable of the program from the learned residual stream.",
        "Probes look at the positions where a variable is causally relevant in the compiled model. Colour is the "
        "held-out score minus its best control (commonest value, shuffled labels, an untrained model of its "
        "shape): blue is above the controls, white is what they explain. Decodable is not the same as used.",
        ("decodability",),
        ("decodability", "representations"),
    ),
    Section(
        "overlaps",
        "Shared subspaces",
        "How much of the smaller of two variables' subspaces lies in the other.",
        "At the last hook point of the learned model where both have one, averaged over positions.",
        ("overlaps",),
        ("overlaps",),
    ),
    Section(
        "similarity",
        "Similarity of streams",
        "Debiased linear CKA of every hook point of the compiled model with every one of the learned model.",
        "It describes, and is no evidence of its own: it can move without any change of function.",
        ("similarity",),
        ("similarity",),
    ),
    Section(
        "ov",
        "OV circuits",
        "W_E W_V W_O W_U of each learned head: the logits that attending to a token writes.",
        "A blue diagonal copies.",
        ("ov",),
    ),
    Section(
        "qk",
        "QK circuits",
        "The learned attention score of layer 0 as a sum of four terms, by what query and key are read from.",
        "",
        ("qk",),
    ),
    Section(
        "residual_stream",
        "Compiled residual stream",
        "What every direction of the compiled model holds at every position of one input, layer by layer.",
        "",
        ("residual_stream",),
    ),
)  # fmt: skip

SHOWN_IN = {"answers": "behaviour", "variables": "interchange", "routes": "routes"}
"""The section that has the evidence of each level of a verdict."""

WIDE = {"ov", "qk", "residual_stream", "similarity", "decodability", "overlaps", "program", "heads"} | {
    f"{name}_{method}" for name in ("edges", "head_positions") for method in METHODS
}
"""Figures that keep their width on a phone and scroll; others are drawn as narrow as it is."""
