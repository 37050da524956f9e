"""The terms of a comparison, each in one sentence: what the report and docs/glossary.md show."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A term and its meaning.

    Attributes:
        name: The term.
        meaning: One sentence.
        module: Where it is made, below `rasplens.compare`.
        columns: The columns of tables, axes and answers that it explains.
    """

    name: str
    meaning: str
    module: str
    columns: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The module, and the columns in parentheses."""
        columns = ", ".join(f"`{column}`" for column in self.columns)
        return f"`{self.module}`" + (f" ({columns})" if columns else "")


def _with_methods(*ends: str) -> tuple[str, ...]:
    return tuple(f"{method}{end}" for end in ends for method in ("zero", "mean", "resample"))


GLOSSARY = (
    Term(
        "task",
        "What both models are asked: inputs, right answers, and the positions at which answers are read.",
        "pipeline",
        ("task",),
    ),
    Term(
        "reference",
        "The compiled program, whose every head and variable is known.",
        "models.pairing",
        ("program", "compiled"),
    ),
    Term(
        "learned model",
        "The model under study, whose vocabulary may differ from the task's.",
        "models.studied_model",
        ("learned",),
    ),
    Term(
        "untrained control",
        "A randomly initialised model of the learned model's shape: the floor of most scores.",
        "models.pairing",
        ("untrained",),
    ),
    Term(
        "vocabulary",
        "How a model takes a task's inputs and gives its answers: token ids, positions, and logits.",
        "models.vocabulary",
    ),
    Term(
        "variable",
        "An s-op of the program; the compiled model has directions of the residual stream for it.",
        "models.pairing",
        ("variable", "first", "second"),
    ),
    Term(
        "hook point",
        "A place in the forward pass, by TransformerLens's name, such as blocks.0.hook_resid_post.",
        "models.studied_model",
        ("point",),
    ),
    Term(
        "position",
        "A place in the task's input sequence; a query attends to a key.",
        "models.studied_model",
        ("position", "query", "key"),
    ),
    Term(
        "head",
        "An attention head by layer and index, such as L0H1; a table may say which side it belongs to.",
        "models.studied_model",
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
        "Zeroing the activation at this position changes an answer's logits.",
        "models.relevance",
    ),
    Term(
        "held-out inputs",
        "Inputs on which nothing was trained, fitted or chosen; scores are measured on them.",
        "models.pairing",
        ("n", "inputs"),
    ),
    Term(
        "distinguishing inputs",
        "Inputs on which alternative programs differ in their answers, or in what they read.",
        "evidence.behaviour",
    ),
    Term(
        "alternative program",
        "Another program for the same task, which the learned model might implement instead.",
        "ranking",
    ),
    Term(
        "out-of-distribution inputs",
        "Inputs in the task's layout whose tokens are drawn independently.",
        "evidence.behaviour",
    ),
    Term(
        "axis",
        "One kind of evidence that describes, from its best control (0) to the compiled model itself (1).",
        "evidence.axes",
        ("name", "score", "note"),
    ),
    Term(
        "has no score",
        "An axis without a score could not be measured on these inputs; its note says why.",
        "evidence.axes",
    ),
    Term(
        "interval",
        "The 95 % bootstrap interval over inputs; models and sites stay as they are.",
        "evidence.axes",
        ("low", "high"),
    ),
    Term(
        "p-value",
        "The share of permutations that reach the observed score.",
        "evidence.ablation.profiles",
        ("p",),
    ),
    Term(
        "behaviour",
        "The axis of answers: the share on which model and program agree.",
        "evidence.behaviour",
        ("behaviour", "agreement"),
    ),
    Term(
        "exhaustive",
        "Whether the inputs asked are all that there are of that kind: then nothing is left to chance.",
        "evidence.behaviour",
        ("exhaustive",),
    ),
    Term(
        "undefined",
        "The share of the answers asked for that the program does not have: a model that has one does not agree.",
        "evidence.behaviour",
        ("undefined",),
    ),
    Term("right", "The share of answers that are the task's own target.", "evidence.behaviour", ("right",)),
    Term(
        "interchange",
        "The axis of interchange interventions: a variable's subspace is patched from another input.",
        "evidence.interchange.accuracy",
        ("interchange",),
    ),
    Term(
        "interchange pairs",
        "Pairs of a base and a source input between which one variable of the program is interchanged.",
        "evidence.interchange.pairs",
        ("pairs",),
    ),
    Term(
        "intervention mask",
        "The positions of each interchange pair at which the variable is taken from the source.",
        "evidence.interchange.pairs",
    ),
    Term(
        "IIA",
        "Interchange-intervention accuracy: of the answers that must change, the share that are the program's.",
        "evidence.interchange.accuracy",
        ("iia",),
    ),
    Term(
        "specificity",
        "Of the answers that must not change, the share that stay the program's.",
        "evidence.interchange.accuracy",
        ("specificity",),
    ),
    Term(
        "site",
        "The hook point, the method (component, linear map or DAS) and the subspace of an interchange.",
        "evidence.interchange.sites",
        ("method", "rank", "linear map"),
    ),
    Term(
        "component",
        "All of what a head gathers, or of what a layer's heads or MLP write: interchanged whole, without a map.",
        "evidence.interchange.sites",
        ("component",),
    ),
    Term(
        "ceiling",
        "What the same search reaches in the compiled model itself, where the variable is known to be.",
        "evidence.interchange.accuracy",
        ("ceiling",),
    ),
    Term(
        "DAS",
        "Distributed alignment search: a subspace learned by gradient descent on interchange pairs.",
        "evidence.interchange.das",
        ("DAS",),
    ),
    Term(
        "full-stream patching",
        "A control of interchange: the whole residual stream is taken from the source.",
        "evidence.interchange.accuracy",
        ("full_stream",),
    ),
    Term(
        "random subspaces",
        "A control of interchange: subspaces of the same rank among the directions that the stream varies along.",
        "evidence.interchange.accuracy",
        ("random",),
    ),
    Term(
        "active and dormant part",
        "Of what an interchange changes and the model reads: the part that moves with the variable, and the rest.",
        "evidence.interchange.active_directions",
        ("active", "dormant"),
    ),
    Term(
        "mean-ablated subspace",
        "The accuracy drop when a variable's subspace, or a random one, is held at its mean over inputs.",
        "evidence.interchange.accuracy",
        ("ablated", "ablated_random"),
    ),
    Term(
        "edge patching",
        "In all layers and heads at once, values, keys or queries along some edges are taken from another input.",
        "evidence.routes.edge_patching",
        ("part", "edges"),
    ),
    Term(
        "route",
        "Which attention edges information takes between positions, and what decides: keys, queries or a count.",
        "evidence.routes.agreement",
        ("routes",),
    ),
    Term(
        "posable question",
        "An intervention after which selections, variables and answers are such as some input of the task has.",
        "evidence.posable",
        ("drawn",),
    ),
    Term(
        "changed and kept answers",
        "Of those that an edge patch should change (or should not), the share that come out as the program says.",
        "evidence.routes.agreement",
        ("changed", "n_changed", "kept", "n_kept"),
    ),
    Term(
        "controls of edge patching",
        "The answers expected of other pairs, and what stays when all edges between positions are patched.",
        "evidence.routes.agreement",
        ("control_changed", "control_kept"),
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
        "The query rows on which a compiled head selects nothing although it could, and its variable has a value.",
        "evidence.attention.heads",
    ),
    Term("masked rows", "Attention rows that may attend to nothing.", "analyses.critical"),
    Term(
        "similarity",
        "1 minus the Jensen-Shannon divergence in bits between attention rows, on active query rows.",
        "evidence.attention.heads",
        ("similarity",),
    ),
    Term(
        "shuffled",
        "The same score with inputs (or labels) shuffled: what does not depend on them.",
        "evidence.attention.heads",
        ("shuffled", "cka_shuffled", "cca_shuffled", "procrustes_shuffled"),
    ),
    Term(
        "input dependence",
        "Similarity minus shuffled similarity: what attention owes to the input and not to position.",
        "evidence.attention.heads",
        ("input_dependence",),
    ),
    Term(
        "concordance",
        "Lin's (1989) coefficient of how closely attention changes over inputs with the compiled head's.",
        "evidence.attention.concordance",
        ("concordance",),
    ),
    Term(
        "matched",
        "Joined by the one-to-one assignment of heads with the most similarity and concordance.",
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
        "What takes an activation's place: zero, its mean over inputs, or that of another input (resample).",
        "evidence.ablation.effects",
        ("zero", "mean", "resample"),
    ),
    Term("accuracy drop", "Token accuracy before minus after an edit, in [0, 1].", "evidence.ablation.effects"),
    Term(
        "self-repair",
        "How much larger the accuracy drop of two heads together is than the sum of both alone.",
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
        "A probe's score on inputs that are neither fitted nor held out, by which hook points are chosen.",
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
        "How two variables' subspaces lie: cosine, shared share, and what the same values write.",
        "evidence.subspaces.representations",
        ("cosine", "shared", "correlation", "scale"),
    ),
    Term(
        "stream similarity",
        "CKA, CCA and Procrustes distance of two residual streams; descriptive, no evidence of its own.",
        "evidence.subspaces.similarity",
        ("cka", "cca", "procrustes"),
    ),
    Term(
        "verdict",
        "The answer of a comparison: implements, partly, does not, or cannot tell.",
        "verdict.verdict",
        ("verdict", "implements", "partly", "does not", "cannot tell"),
    ),
    Term(
        "claim",
        "What a program says of a model that implements it, tested by independent trials.",
        "verdict.claims",
        ("claim", "control", "substantial", "reason"),
    ),
    Term(
        "status of a claim",
        "It holds, fails, is open (cannot tell), or is not testable on these inputs or in this model.",
        "verdict.claims",
        ("status", "holds", "fails", "not testable"),
    ),
    Term(
        "level",
        "What claims are about, each with an answer of its own: the same answers, variables, or routes.",
        "verdict.verdict",
        ("answers", "variables", "same answers", "same variables", "same routes"),
    ),
    Term(
        "interval of a claim",
        "The 95 % interval of a share of trials (Wilson 1927), over all programs that are compared (Bonferroni).",
        "verdict.claims",
    ),
    Term(
        "labelled calibration set",
        "Labelled pairs, of which it is known whether the model implements the reference.",
        "verdict.calibration.labelled_pairs",
    ),
    Term(
        "distilled model",
        "A model trained from random weights to match the activations of a compiled one.",
        "verdict.calibration.labelled_pairs",
    ),
    Term(
        "oblique",
        "Of a disguise: the basis of the residual stream is any invertible one, which keeps no angles or lengths.",
        "verdict.calibration.labelled_pairs",
    ),
    Term(
        "twin",
        "An exact re-writing of a transformer: heads split or doubled, idle layers, dormant pathways.",
        "verdict.calibration.labelled_pairs",
    ),
)
"""Every term, in the order of a report."""


def as_markdown() -> str:
    """The table of docs/glossary.md."""
    rows = [f"| {term.name} | {term.meaning} | {term.where} |" for term in GLOSSARY]
    return "\n".join(["| term | meaning | where |", "|---|---|---|", *rows])
