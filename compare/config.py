"""How much a comparison looks at: one frozen config, and presets where time buys precision."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from rasplens.errors import RaspLensError

Preset = Literal["quick", "standard", "thorough"]


@dataclass(frozen=True)
class CompareConfig:
    """The numbers of inputs, pairs, permutations and restarts of a comparison, and its thresholds.

    Attributes:
        n_inputs: Held-out inputs to score on, where the task has so many; at least 10.
        n_fitting: Other inputs on which probes and maps are fitted and sites are chosen; and as many
            out-of-distribution ones.
        relevance_inputs: Inputs on which causally relevant positions are looked for.
        questions: Questions about each route: pairs of inputs that change an answer, and as many that keep one. A
            clear claim needs fewer; one that stays open gets up to four times as many.
        questions_tried: Pairs that are drawn at most to find those.
        enumerated: Routes are asked about on all pairs of inputs, and answers on all inputs, where these are so
            many questions at most; not of models of more than a million parameters.
        interchange_pairs: Pairs whose answer changes, to choose a site on, and as many others to score on.
        pairs_tried: Pairs that are drawn at most to find those.
        control_pairs: As many of them are for the same search in an untrained and in the compiled model.
        least_pairs: With fewer pairs to score on, a variable is not tested.
        das_steps: Steps of gradient descent without getting better, after which distributed alignment search ends.
        random_subspaces: Random subspaces that make up the control of an interchange.
        head_answers: Heads are ablated on as many inputs as have this many answers together.
        edge_answers: The same for attention edges, heads at one position, and pairs of heads.
        neuron_answers: The same for neurons.
        most_heads: Models with more heads than this are not ablated head by head or edge by edge.
        most_neurons: Models with more neurons than this are not ablated neuron by neuron.
        attention_shuffles: Shuffles of inputs beside the similarity of each pair of heads.
        attention_permutations: Shuffles for the p-value of each matched pair; p is at least 1 / (1 + this).
        profile_permutations: Permutations for the p-values of ablation profiles.
        bootstrap_draws: Bootstrap samples of the inputs behind each interval.
        comparisons: Comparisons that are made at once: their intervals hold together (Bonferroni).
        similarity_rows: Rows (an input at a position) on which residual streams are compared as a whole.
        most_kept_weights: Both models are kept in the file and the report of a comparison, so that other inputs
            can be looked at there, if neither has more weights than this; with 0, none is.
    """

    n_inputs: int = 1_000
    n_fitting: int = 1_500
    relevance_inputs: int = 48
    questions: int = 300
    questions_tried: int = 4_000
    enumerated: int = 100_000
    interchange_pairs: int = 500
    pairs_tried: int = 10_000
    control_pairs: int = 200
    least_pairs: int = 10
    das_steps: int = 50
    random_subspaces: int = 5
    head_answers: int = 2_000
    edge_answers: int = 400
    neuron_answers: int = 100
    most_heads: int = 100
    most_neurons: int = 1_024
    attention_shuffles: int = 5
    attention_permutations: int = 39
    profile_permutations: int = 1_000
    bootstrap_draws: int = 400
    comparisons: int = 1
    similarity_rows: int = 500
    most_kept_weights: int = 1_000_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < LEAST.get(field.name, 1):
                raise RaspLensError(
                    f"{field.name} of a CompareConfig must be a whole number of at least "
                    f"{LEAST.get(field.name, 1)}; got {value!r}."
                )


LEAST: Mapping[str, int] = {
    "n_inputs": 10,
    "n_fitting": 10,
    "das_steps": 0,
    "enumerated": 0,
    "most_heads": 0,
    "most_neurons": 0,
    "most_kept_weights": 0,
    "similarity_rows": 4,
}
"""The least value of each field, where that is not 1; a comparison needs ten inputs for its probes."""

PRESETS: Mapping[str, CompareConfig] = {
    "quick": CompareConfig(
        n_inputs=200,
        n_fitting=500,
        relevance_inputs=24,
        questions=150,
        questions_tried=2_000,
        enumerated=0,
        interchange_pairs=150,
        pairs_tried=3_000,
        control_pairs=100,
        das_steps=20,
        random_subspaces=3,
        head_answers=500,
        edge_answers=150,
        attention_permutations=19,
        profile_permutations=199,
        bootstrap_draws=200,
        similarity_rows=200,
    ),
    "standard": CompareConfig(),
    "thorough": CompareConfig(
        n_inputs=4_000,
        n_fitting=4_000,
        questions=1_000,
        questions_tried=20_000,
        enumerated=5_000_000,
        interchange_pairs=1_000,
        pairs_tried=40_000,
        control_pairs=500,
        das_steps=100,
        random_subspaces=10,
        head_answers=8_000,
        edge_answers=2_000,
        neuron_answers=400,
        attention_permutations=199,
        profile_permutations=4_000,
        bootstrap_draws=2_000,
    ),
}
"""The configs that most comparisons want, by name: less time, the default, or more precision."""


def get_config(config: CompareConfig | Preset, **changes: int) -> CompareConfig:
    """A config, or a preset by its name, with some fields changed.

    Raises:
        RaspLensError: If there is no such preset, or a field makes no sense.
    """
    if isinstance(config, str):
        if config not in PRESETS:
            raise RaspLensError(f"Unknown config preset {config!r}; choose one of {', '.join(PRESETS)}.")
        config = PRESETS[config]
    return replace(config, **changes) if changes else config
