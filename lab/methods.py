"""Methods of circuit discovery on models whose circuit is known: the board of docs/methods.md.

python -m lab.methods --write docs/methods.md --figure docs/images/methods-signed.png        the whole board
python -m lab.methods --write docs/methods.md --each lab/results/methods-each.csv     and each model by itself
python -m lab.methods --siit models --only sort,induction                with models of lab/siit.py
python -m lab.methods --programs interpbench --siit models --kinds compiled siit     those of InterpBench
python -m lab.methods ... --write docs/methods.md --section methods-narrow       another place in the page
python -m lab.methods --methods eap gim relp        some methods alone
python -m lab.methods --scores scores.parquet       and the score of every edge, in the default setting
"""

import argparse
import json
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import plotly.express as px

from lab.known_circuits import add_model_arguments, by_kind, interval, known_case, left_out, model_jobs
from lab.page import show, table, write_csv
from lab.swept import swept
from rasplens.compare.discovery.methods.catalogue import METHODS
from rasplens.compare.discovery.protocol import Protocol, Scoring, Setting
from rasplens.compare.discovery.scoreboard import board_of, edge_scores, medians, method_runs
from rasplens.errors import RaspLensError
from rasplens.sweeps.job import Row

DEFAULT = "default"

EDGE, OF_RUN = ["edge", "score", "label"], ["program", "kind", "method"]
"""Of each edge, and of what a method was asked."""

SIZE = 900, 400
"""Of the picture, in pixels."""

GRADIENTS = [
    "eap", "eap-transformer-lens", "eap-ig-inputs", "eap-ig-activations", "eap-gp", "gim", "relp", "atp-star",
    "ap-nodes", "ap-ig-nodes",
]  # fmt: skip
"""Methods that approximate patching by gradients."""

SETTINGS = {
    "zero ablation": Setting(Protocol(ablation="zero")),
    "mean ablation": Setting(Protocol(ablation="mean")),
    "signed": Setting(Protocol(absolute=False)),
    "loss": Setting(Protocol(metric="loss")),
    "loss, signed": Setting(Protocol(metric="loss", absolute=False)),
    "logit difference": Setting(Protocol(metric="logit_difference")),
    "one token changed": Setting(Protocol(corruption="one_token")),
    "without embeddings": Setting(scoring=Scoring(embeddings="out")),
    "heads whole": Setting(scoring=Scoring(heads="whole")),
    "loss, stairs": Setting(Protocol(metric="loss"), Scoring(curve="stairs")),
    "loss, signed, stairs": Setting(Protocol(metric="loss", absolute=False), Scoring(curve="stairs")),
}
"""Settings that differ from the default in one thing at a time, but for what is added to the loss."""

FLOORS = {f"floor {floor:g}": Setting(scoring=Scoring(floor=floor)) for floor in (0.0, 1e-9, 1e-6, 1e-3)}
"""From which share of the largest score on scores are told apart."""

TOLD_APART = ["exact", *GRADIENTS]
"""Methods whose ranks are shown under every floor."""

FEWER_PAIRS = Protocol(n_pairs=32)

ITS_EDGES = Scoring(embeddings="one", heads="whole", circuit="program", floor=0.0)
"""Those of InterpBench's public code: tokens and positions are one node, each head is one, the circuit is all of
the program's, and scores have no floor."""

INTERPBENCH = {
    "its edges": Setting(FEWER_PAIRS, ITS_EDGES),
    "its edges and curve": Setting(FEWER_PAIRS, replace(ITS_EDGES, curve="stairs")),
    "the same, signed": Setting(replace(FEWER_PAIRS, absolute=False), replace(ITS_EDGES, curve="stairs")),
}
"""Then its curve as well, stairs below the circuits at fixed thresholds; and then effects with their sign."""

VARIED = ["exact", "eap", "eap-ig-inputs"]
"""Methods that are tried in every setting."""

OF_CURVE = "stairs"
"""In the name of a setting that changes the ROC curve alone: its average precision is another's."""

OF_ONE_NODE = 2
"""Edges of a circuit of one node: from the input, and into the logits."""

PUBLISHED = {"acdc": 0.959, "eap-ig-inputs": 0.910, "edge-pruning": 0.75, "eap": 0.20}
"""Median AUROC of edges on InterpBench's 16 cases (Gupta et al. 2024, arXiv 2407.14494);
`edge-pruning` is their subnetwork probing on edges."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", type=Path, help="the PNG to draw what signed scores do into")
    parser.add_argument("--each", type=Path, help="the CSV file to put a table of each model into")
    parser.add_argument("--section", help="the tables' place in their pages; that of the programs by default")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), help="only these, in the default setting")
    parser.add_argument("--scores", type=Path, help="the Parquet file to put the scores of all edges into")
    add_model_arguments(parser)
    arguments = parser.parse_args()
    if arguments.figure is not None and arguments.figure.suffix != ".png":
        parser.error("--figure is a .png")
    found = swept(model_jobs("lab.methods:scored", arguments, only=arguments.methods), arguments)
    order = list(METHODS)
    found = found.sort_values(
        "method", kind="stable", key=lambda names: names.map(order.index, na_action="ignore")
    )
    is_published = arguments.programs == "interpbench"
    text = tables(found, arguments.seed, is_published)
    section = arguments.section or ("methods-interpbench" if is_published else "methods")
    show(text, arguments.write, section)
    if arguments.each is not None:
        write_csv(arguments.each, *each_model(found))
    if arguments.scores is not None:
        every_edge(found).to_parquet(arguments.scores, index=False)
    if arguments.figure is not None:
        draw_signs(found, arguments.figure)


def scored(
    programs_of: str, name: str, made: str, seed: int, stored: str | None, only: Sequence[str] | None = None
) -> list[Row]:
    """All methods on a model, then some in other settings; or only some, in the default one."""
    try:
        case = known_case(programs_of, name, made, seed, stored)
    except RaspLensError as error:
        return [{"left_out": str(error).partition(". ")[0]}]
    has_logits = case.vocabulary.columns is not None
    parts = []
    for names, of in [(only, {DEFAULT: Setting()})] if only else asked(programs_of, has_logits):
        settings = {each: replace(one, protocol=replace(one.protocol, seed=seed)) for each, one in of.items()}
        runs = list(method_runs([case], {name: METHODS[name] for name in names}, settings))
        edges = [
            edge_scores([run])[EDGE].to_json(orient="values") if run.setting_name == DEFAULT else None
            for run in runs
        ]
        parts.append(board_of(runs).assign(edges=edges))
    return json.loads(pd.concat(parts).to_json(orient="records", double_precision=15))


def every_edge(found: pd.DataFrame) -> pd.DataFrame:
    """The score of every edge in the default setting, one a row, with its label."""
    done = found[found["edges"].notna()]
    parts = [
        pd.DataFrame(json.loads(row["edges"]), columns=EDGE).assign(**{name: row[name] for name in OF_RUN})
        for _, row in done.iterrows()
    ]
    return pd.concat(parts, ignore_index=True)[[*OF_RUN, *EDGE]]


def asked(programs_of: str, has_logits: bool) -> list[tuple[Collection[str], Mapping[str, Setting]]]:
    """Which methods are run in which settings."""
    if programs_of == "library":
        of_numbers = {each: one for each, one in SETTINGS.items() if one.protocol.metric == "kl"}
        default = {DEFAULT: Setting()}
        controls = [name for name in METHODS if name not in TOLD_APART]
        varied = SETTINGS if has_logits else of_numbers
        return [(TOLD_APART, default | FLOORS), (controls, default), (VARIED, varied)]
    default = {DEFAULT: Setting(FEWER_PAIRS)}
    # Its methods by gradients take those of the loss, summed over an input's answers.
    of_loss = {
        each: replace(one, protocol=replace(one.protocol, metric="loss", answers="sum"))
        for each, one in INTERPBENCH.items()
    }
    by_effects, by_gradients = ("acdc", "edge-pruning"), ("eap", "eap-ig-inputs")
    return [
        ([name for name in METHODS if name not in by_effects], default),
        (by_effects, default | INTERPBENCH),
        (by_gradients, of_loss),
    ]


def tables(found: pd.DataFrame, seed: int, is_published: bool) -> str:
    """Return the text to write; beside published figures if the programs are those of the paper."""
    done = found[found["method"].notna()]
    default = done[done["setting"] == DEFAULT]
    parts = [
        f"### {default['program'].nunique()} programs, {len(default.groupby(['program', 'kind']))} models",
        "Average precision:",
        by_kind(default, "average_precision", seed),
        "### AUROC",
        by_kind(default, "auroc", seed),
        "### Other measures, medians over all models",
        _measures(default),
    ]
    if is_published:
        found_by = done[done["setting"] == "its edges"]
        larger = found_by[found_by["base_rate"] * found_by["n_edges"] > OF_ONE_NODE + 0.5]["program"].unique()
        of_several = done[done["program"].isin(larger)]
        both = [(done, ""), (of_several, ", circuits of several nodes")]
        for some, of_which in both[1:] if len(of_several) == len(done) else both:
            heading = f"### Beside published figures: median AUROC, {some['program'].nunique()} programs{of_which}"
            parts += [heading, _published(some, seed)]
    elif len(done) > len(default):
        parts += ["### By the floor: median average precision and AUROC over all models", _floors(done, seed)]
        of_ranks = done[~done["setting"].str.contains(OF_CURVE)]
        parts += ["### Other settings: median average precision over all models"]
        parts += [_settings(of_ranks, "average_precision", seed)]
        parts += ["### Other settings: median AUROC over all models", _settings(done, "auroc", seed)]
    return "\n\n".join([*parts, *left_out(found)])


def each_model(found: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Average precision and AUROC of each model with its intervals: a column for each method."""
    default = found[found["setting"] == DEFAULT]
    methods = list(dict.fromkeys(default["method"]))
    rows = []
    for measure, title in (("average_precision", "average precision"), ("auroc", "AUROC")):
        for names, of_model in default.groupby(["name", "kind"], sort=False):
            cells = of_model.set_index("method").loc[methods]
            rows.append([title, *names, *(_with_ends(cell, measure) for cell in cells.to_dict("records"))])
    return ["measure", "program", "kind", *methods], rows


def _with_ends(cell: Mapping[str, float], measure: str) -> str:
    """A measure with its interval, if it has one."""
    middle, low, high = cell[measure], cell[f"{measure}_low"], cell[f"{measure}_high"]
    if middle != middle:
        return "–"
    return f"{middle:.2f}" if low != low else f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def _measures(default: pd.DataFrame) -> str:
    names = {
        "base_rate": "base rate",
        "cpr": "CPR",
        "cmd": "CMD",
        "decoys": "decoys below",
        "method_seconds": "seconds",
    }
    middle = default.groupby("method", sort=False)[list(names)].median()
    rows = [[f"`{method}`", *(f"{row[name]:.3f}" for name in names)] for method, row in middle.iterrows()]
    return table(["method", *names.values()], rows)


def _floors(done: pd.DataFrame, seed: int) -> str:
    """By method, medians under each floor: of average precision, then of AUROC."""
    keys = ["setting", "method"]
    measures = "average_precision", "auroc"
    precision, area = (medians(done, measure, keys, seed).set_index(keys)["median"] for measure in measures)
    rows = [
        [f"`{method}`", *(f"{precision[key]:.3f}, {area[key]:.3f}" for key in ((each, method) for each in FLOORS))]
        for method in TOLD_APART
        if (next(iter(FLOORS)), method) in area.index
    ]
    return table(["method", *FLOORS], rows)


def _settings(done: pd.DataFrame, measure: str, seed: int) -> str:
    found = medians(done, measure, ["setting", "method"], seed).set_index(["setting", "method"])
    rows = [
        [name, *(interval(found.loc[(name, method)]) for method in VARIED)]
        for name in dict.fromkeys(done["setting"])
        if name not in FLOORS
    ]
    return table(["setting", *(f"`{method}`" for method in VARIED)], rows)


def _published(done: pd.DataFrame, seed: int) -> str:
    settings = [DEFAULT, *INTERPBENCH]
    own = medians(done[done["kind"] == "siit"], "auroc", ["setting", "method"], seed)
    own = own.set_index(["setting", "method"])
    rows = [
        [
            f"`{method}`",
            f"{theirs:.3f}",
            *(interval(own.loc[key]) if (key := (each, method)) in own.index else "–" for each in settings),
        ]
        for method, theirs in PUBLISHED.items()
    ]
    return table(["method", "published", *settings], rows)


def draw_signs(found: pd.DataFrame, picture: Path) -> None:
    """Draws what signed scores do, as PNG."""
    from lab.pictures import browser_page, photograph  # needs a browser

    with tempfile.TemporaryDirectory() as folder, browser_page(*SIZE) as view:
        html = Path(folder) / "signed.html"
        signs(found).write_html(html, include_plotlyjs=True, config={"displayModeBar": False})
        photograph(view, html, picture)


def signs(found: pd.DataFrame):
    """AUROC of EAP on each model by the size of effects, and by effects with their sign."""
    own = found[(found["method"] == "eap") & found["setting"].isin(["loss", "loss, signed"])]
    ranked = own["setting"].map({"loss": "by size", "loss, signed": "with its sign"})
    return px.strip(
        own.assign(ranked=ranked), x="kind", y="auroc", color="ranked", hover_name="program",
        labels={"auroc": "AUROC of EAP", "kind": "", "ranked": "effects ranked"},
        template="simple_white", height=380,
    )  # fmt: skip


if __name__ == "__main__":
    main()
