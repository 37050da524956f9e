"""The terms of a comparison, each in one sentence: what the report and docs/glossary.md show."""

from rasplens.compare.claims.catalogue import CLAIMS
from rasplens.compare.term import Term


def _with_methods(*ends: str) -> tuple[str, ...]:
    return tuple(f"{method}{end}" for end in ends for method in ("zero", "mean", "resample"))


GLOSSARY = (
    Term(
        "task",
        "The inputs, the right answers, and the positions at which answers are read.",
        "pipeline",
        ("task",),
    ),
    Term(
        "reference",
        "The compiled program: all of its heads and variables are known.",
        "pairing.pairing",
        ("program", "compiled"),
    ),
    Term(
        "learned model",
        "The model under study, whose vocabulary may differ from the task's.",
        "subject.studied_model",
        ("learned",),
    ),
    Term(
        "untrained control",
        "A randomly initialised model of the learned model's shape: the floor of most scores.",
        "pairing.pairing",
        ("untrained",),
    ),
    Term(
        "vocabulary",
        "The token ids, positions and logits by which a model takes a task's inputs and gives its answers.",
        "subject.vocabulary",
    ),
    Term(
        "variable",
        "An s-op of the program; the compiled model has directions of the residual stream for it.",
        "pairing.pairing",
        ("variable", "first", "second"),
    ),
    Term(
        "hook point",
        "A place in the forward pass, by TransformerLens's name, such as blocks.0.hook_resid_post.",
        "subject.studied_model",
        ("point",),
    ),
    Term(
        "position",
        "A place in the task's input sequence; a query attends to a key.",
        "subject.studied_model",
        ("position", "query", "key"),
    ),
    Term(
        "head",
        "An attention head by layer and index, such as L0H1; a table may say which side it belongs to.",
        "subject.studied_model",
        ("layer", "head", "compiled_layer", "compiled_head"),
    ),
    Term(
        "worked input",
        "An input with its right answers and those of both models, position by position.",
        "evidence.examples",
        ("input", "token", "right"),
    ),
    Term("neuron", "A unit of an MLP, after its non-linearity.", "evidence.ablation.effects", ("neuron",)),
    Term(
        "causally relevant",
        "Of a position: an answer's logits change if the activation there is exchanged for another's.",
        "pairing.relevance",
    ),
    Term(
        "held-out inputs",
        "Inputs on which nothing was trained, fitted or chosen; scores are measured on them.",
        "pairing.pairing",
        ("n", "inputs"),
    ),
    Term(
        "alternative program",
        "Another program for the same task, which the learned model might implement instead.",
        "ranking",
    ),
    *(term for kind in CLAIMS for term in kind.terms),
    Term(
        "axis",
        "A descriptive score of one kind of evidence: 0 is its best control, 1 the compiled model itself.",
        "axes",
        ("name", "score", "note"),
    ),
    Term(
        "has no score",
        "An axis without a score could not be measured on these inputs; its note says why.",
        "axes",
    ),
    Term(
        "interval",
        "The 95 % bootstrap interval over inputs; models and sites are held fixed.",
        "axes",
        ("low", "high"),
    ),
    Term(
        "p-value",
        "The share of permutations that reach the observed score.",
        "evidence.ablation.profiles",
        ("p",),
    ),
    Term(
        "attention",
        "The axis of attention patterns; as a column of edges, the mean attention to the edge.",
        "evidence.attention.heads",
        ("attention",),
    ),
    Term(
        "active query rows",
        "The query rows on which a compiled head selects something that reaches an answer.",
        "evidence.attention.heads",
        ("rows",),
    ),
    Term(
        "inactive query rows",
        "The query rows on which a compiled head could select but does not, and its variable has a value.",
        "evidence.attention.heads",
    ),
    Term("masked rows", "Query rows that have no key left to attend to.", "analyses.critical"),
    Term(
        "similarity",
        "1 minus the Jensen-Shannon divergence in bits between attention rows, on active query rows.",
        "evidence.attention.heads",
        ("similarity",),
    ),
    Term(
        "shuffled",
        "The same score with inputs (or labels) shuffled: the part that does not depend on them.",
        "evidence.attention.heads",
        ("shuffled", "cka_shuffled", "cca_shuffled", "procrustes_shuffled"),
    ),
    Term(
        "input dependence",
        "Similarity minus shuffled similarity: the part that depends on the input, not on position alone.",
        "evidence.attention.heads",
        ("input_dependence",),
    ),
    Term(
        "concordance",
        "How closely attention changes over inputs with the compiled head's (the coefficient of Lin 1989).",
        "evidence.attention.concordance",
        ("concordance",),
    ),
    Term(
        "matched",
        "Paired by the one-to-one assignment of heads that maximises similarity and concordance.",
        "evidence.attention.heads",
        ("matched",),
    ),
    Term(
        "split and merged heads",
        "Two learned heads that share one compiled head's work, or one that does the work of several.",
        "evidence.attention.heads",
        ("kind", "split", "merged", "gain"),
    ),
    Term(
        "ablation",
        "The axis of ablation effects of attention edges: the cosine of both models' profiles.",
        "evidence.ablation.effects",
        ("ablation",),
    ),
    Term(
        "ablation effect",
        "The accuracy drop when a part is ablated; also the drop in probability and the KL divergence in nats.",
        "evidence.ablation.effects",
        _with_methods("", "_probability", "_kl"),
    ),
    Term(
        "ablation method",
        "What replaces an activation: zero, its mean over inputs, or its value on another input (resample).",
        "evidence.ablation.effects",
        ("zero", "mean", "resample"),
    ),
    Term(
        "accuracy drop",
        "Token accuracy before an edit minus token accuracy after it.",
        "evidence.ablation.effects",
    ),
    Term(
        "self-repair",
        "The accuracy drop of ablating two heads together, minus the sum of the drops of each alone.",
        "evidence.ablation.effects",
        _with_methods("_repaired"),
    ),
    Term(
        "critical edge",
        "An attention edge whose ablation drops token accuracy by more than 0.01.",
        "evidence.ablation.profiles",
    ),
    Term(
        "matched profiles",
        "Spearman's correlation over positions of the ablation effects of matched heads, and of unmatched ones.",
        "evidence.ablation.profiles",
        ("rho", "unmatched"),
    ),
    Term(
        "subspaces",
        "The axis of linear probes: how well each variable can be decoded from the residual stream.",
        "evidence.subspaces.decodability",
        ("subspaces", "measure"),
    ),
    Term(
        "chance",
        "The score of always giving the commonest value.",
        "evidence.subspaces.decodability",
        ("chance",),
    ),
    Term(
        "choice",
        "A probe's score on inputs that are neither fitted nor held out; hook points are chosen by it.",
        "evidence.subspaces.decodability",
        ("choice",),
    ),
    Term(
        "representation",
        "The share of the stream's variance at a position that only this variable explains.",
        "evidence.subspaces.representations",
        ("explained",),
    ),
    Term(
        "overlap",
        "How two variables' subspaces relate: smallest angle, common share, and how alike equal values are.",
        "evidence.subspaces.representations",
        ("cosine", "shared", "correlation", "scale"),
    ),
    Term(
        "stream similarity",
        "CKA, CCA and Procrustes distance of two residual streams; descriptive only.",
        "evidence.subspaces.similarity",
        ("cka", "cca", "procrustes"),
    ),
    Term(
        "verdict",
        "The conclusion of a comparison: implements, partly, does not, or cannot tell.",
        "verdict.verdict",
        ("verdict", "implements", "partly", "does not", "cannot tell"),
    ),
    Term(
        "claim",
        "A statement that is true of a model that implements the program, tested by independent trials.",
        "claims.claim",
        ("claim", "control", "substantial", "reason"),
    ),
    Term(
        "status of a claim",
        "One of: holds, in part (of parts of a model), fails, cannot tell (open), not testable.",
        "claims.claim",
        ("status", "holds", "in part", "fails", "not testable"),
    ),
    Term(
        "class of inputs",
        "Inputs that meet up to three conditions, in which a claim fails although it holds everywhere else.",
        "claims.class_by_class",
        ("except_where",),
    ),
    Term(
        "proof and counterexample",
        "Where all inputs, or all pairs of them, could be asked: that none is answered otherwise, or one that is.",
        "claims.claim",
        ("proof", "counterexample"),
    ),
    Term(
        "level",
        "A group of claims with an answer of its own: same answers, same variables, or same routes.",
        "verdict.verdict",
        ("answers", "variables", "same answers", "same variables", "same routes"),
    ),
    Term(
        "interval of a claim",
        "The 95 % interval of a share of trials; a confidence sequence where asking stopped by what came out.",
        "claims.trials.judging",
    ),
    Term(
        "labelled calibration set",
        "Pairs of a model and a reference for which it is known whether the model implements the reference.",
        "lab.labelled.labelled_pairs",
    ),
    Term(
        "distilled model",
        "A model trained from random weights to match the activations of a compiled one.",
        "rasplens.learned.distillation",
    ),
    Term(
        "oblique",
        "Of a disguise: it writes the residual stream in any invertible basis, so angles and lengths are lost.",
        "rasplens.model.twins.reparametrise",
    ),
    Term(
        "twin",
        "An exact rewriting of a transformer, with heads split or doubled, idle layers, or dormant pathways.",
        "rasplens.model.twins",
    ),
)
"""Every term, in the order of a report."""


def as_markdown() -> str:
    """The table of docs/glossary.md."""
    rows = [f"| {term.name} | {term.meaning} | {term.where} |" for term in GLOSSARY]
    return "\n".join(["| term | meaning | where |", "|---|---|---|", *rows])
