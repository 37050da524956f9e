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
        how: How that was measured, a sentence an item; folded away.
        figures: The figures in it, by their names.
        tables: The tables, by their names.
        tabs: By the title of a tab, the figures in it.
    """

    name: str
    title: str
    text: str
    how: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    tabs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


SECTIONS = (
    Section(
        "claims",
        "Claims",
        "Each claim of the program about the model, with its status and its 95 % interval.",
        (
            "The verdict is the conjunction of the claims.",
            "A claim holds if its interval lies right of the grey band, and fails if it lies left of it.",
            "Claims on answers have stricter limits than the band.",
        ),
        ("claims",),
        ("claims",),
    ),
    Section(
        "where",
        "Variables and heads",
        "Where each variable and each head of the program was found in the learned model.",
        (
            "A variable is placed at the hook point where interchange interventions work best.",
            "A compiled head is matched with the learned head that attends most like it.",
            "Open a row to see its evidence.",
        ),
    ),
    Section(
        "routes",
        "Routes",
        "Which answers change when parts of attention edges are patched from another input.",
        (
            "The parts are values, keys, queries, or the attention itself, in all layers and heads at once.",
            "The compiled model, patched in the same way, shows which answers must change and which must stay.",
            "The table gives the shares that do, beside their controls.",
        ),
        (),
        ("routes",),
    ),
    Section(
        "effects",
        "Effects",
        "How far interventions on a part of the model move its logits.",
        (
            "A share is that of the model's own logit difference between two answers which moves as predicted.",
            "Inputs are those on which the model gives the program's answer.",
            "The controls are another answer, other edges, or other heads.",
            "Heads are found by their effect, those with the largest first.",
        ),
        (),
        ("effects", "part_heads"),
    ),
    Section(
        "evidence",
        "Evidence",
        "Five axes describe the models on one scale, from what the controls reach (0) to the compiled model (1).",
        ("Bars are 95 % bootstrap intervals over inputs; models and sites are held fixed.",),
        ("evidence",),
        ("axes",),
    ),
    Section(
        "behaviour",
        "Behaviour",
        "How often the learned model gives the answer of the program.",
        (
            "Inputs are held-out ones, those that distinguish alternative programs, and out-of-distribution ones "
            "(independent tokens).",
            "Inputs outside the task are reported but not counted.",
        ),
        (),
        ("behaviour", "examples"),
    ),
    Section(
        "program",
        "Program graph",
        "The expressions of the reference program, each to the right of its arguments; selectors are diamonds.",
        (),
        ("program",),
    ),
    Section(
        "interchange",
        "Interchange interventions",
        "A variable's subspace of the learned residual stream is patched from another input.",
        (
            "IIA: of the answers that must change, the share that become the program's.",
            "Specificity: of the other answers, the share that stay right.",
            "The score is the smaller of the two.",
            "The controls are full-stream patching, random subspaces of the same rank, and an untrained model.",
            "The active part is spanned by directions that the variable moves and the model reads.",
            "If the active part scores lower, the interchange may be an illusion.",
        ),
        ("interchange",),
        ("interchange",),
    ),
    Section(
        "attention",
        "Attention",
        "Each compiled head beside the learned head that it is matched with.",
        (
            "Similarity is 1 minus the Jensen-Shannon divergence in bits, on the compiled head's active rows.",
            "Shuffled is the same with another input's rows; input dependence is similarity minus shuffled.",
            "Concordance (Lin 1989) measures how closely attention changes over inputs with the compiled head's, "
            "also on its inactive query rows.",
            "The axis is the smaller of similarity (above uniform attention) and concordance, for the worst head.",
        ),
        ("attention",),
        ("attention", "shared_heads"),
    ),
    Section(
        "ablation",
        "Ablation",
        "The drop in token accuracy when a head or an attention edge is ablated.",
        (
            "Zero ablation sets a head's output to zero, mean ablation to its mean over inputs, resample ablation "
            "to that on another input.",
            "An edge is the attention of all heads of a layer from one query to one key.",
            "When an edge is ablated, the rest of its row keeps its proportions.",
            "The maps show the largest effect over layers; blank edges get no attention.",
            "An effect is a lower bound on importance where other parts repair the damage.",
        ),
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
        "Where a linear probe can read each variable of the program from the learned residual stream.",
        (
            "Probes are fitted at the positions where a variable is causally relevant in the compiled model.",
            "Colour is the held-out score minus its best control: the commonest value, shuffled labels, or an "
            "untrained model.",
            "Blue is above the controls; white is what they explain.",
            "A variable that can be decoded need not be used.",
        ),
        ("decodability",),
        ("decodability", "representations"),
    ),
    Section(
        "overlaps",
        "Shared subspaces",
        "For each pair of variables, how much of the smaller subspace lies in the larger one.",
        ("Taken at the last hook point of the learned model where both have one, averaged over positions.",),
        ("overlaps",),
        ("overlaps",),
    ),
    Section(
        "similarity",
        "Similarity of streams",
        "Debiased linear CKA of every hook point of the compiled model with every one of the learned model.",
        ("CKA is descriptive: it can change without any change of function.",),
        ("similarity",),
        ("similarity",),
    ),
    Section(
        "ov",
        "OV circuits",
        "W_E W_V W_O W_U of each learned head: the logits that attending to a token writes.",
        ("A blue diagonal means that the head copies tokens.",),
        ("ov",),
    ),
    Section(
        "qk",
        "QK circuits",
        "The learned attention score of layer 0 as a sum of four terms: query and key from token or position.",
        (),
        ("qk",),
    ),
    Section(
        "residual_stream",
        "Compiled residual stream",
        "The compiled residual stream on one input: every direction at every position, layer by layer.",
        (),
        ("residual_stream",),
    ),
)  # fmt: skip

SHOWN_IN = {"answers": ("behaviour",), "variables": ("interchange",), "routes": ("routes", "effects")}
"""The section that has the evidence of each level of a verdict."""

WIDE = {"ov", "qk", "residual_stream", "similarity", "decodability", "overlaps", "program", "heads"} | {
    f"{name}_{method}" for name in ("edges", "head_positions") for method in METHODS
}
"""Figures that keep their width on a phone and scroll; others are drawn as narrow as it is."""
