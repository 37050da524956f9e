"""The page about the naturally trained models, from the findings of `truth.py`."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from lab.natural.mechanisms import get_mechanism
from lab.natural.train import LEARNED_FROM, SHAPES
from lab.page import table

Findings = Sequence[Mapping[str, Any]]

LABELS = ("same", "different", "unknown")

INTRODUCTION = """# Naturally trained models

`lab/natural/train.py` trains small models from random weights. `lab/natural/truth.py` establishes which
program each of them implements, without `rasplens.compare`: it intervenes on attention edges, and the
program's interpreter gives the expected answers. `lab/natural/truth.json` has every figure.

```console
python -m lab.natural.train     # runs/natural/<mechanism>-<shape>-<seed>.safetensors; goes on where it was
python -m lab.natural.truth     # lab/natural/truth.json and this page
```

A program's steps can be laid out onto the model's layers in several ways. The best layout counts, by these
figures:

| figure | what is done | same |
| --- | --- | --- |
| `attention` | patterns are the program's, exactly (`rule`) or with fixed levels (`levels`) | ≥ 0.95 |
| `cut` | values along all edges that no step reads come from other inputs | ≥ 0.95 |
| `both` | keys and values along random edges come from a source | ≥ 0.95 |
| `values`, `keys` | only one of them does | ≥ 0.95 |
| `queries` | queries at random positions do | ≥ 0.95 |
| `…_class` | the lowest of a test within a class of answers | > 0.75 |
| `own_only` | control: values along all edges come from other inputs | ≤ 0.75 |
| `alone` | control: values along the edges of one step come from other inputs | ≤ 0.75 |

The first two and the controls are accuracies. The other figures are agreement with the program's answers under the
intervention: `changed` over the answers that it says will change, `kept` over the others. Answers that the task
could not ask for are left out. Classes are the answers with a token at a position, with one token at two
positions, with an answer, read at a position or at a token, and what two of these have in common, from 40 answers
on. In them, an answer counts that the task gives to other tokens only.

- **same**: all figures reach the last column, in no class is one at 0.75 or below, and some answers were predicted
  to change.
- **different**: one of these is true.
  - `attention`, `cut` or `both` is at most 0.75.
  - `values`, `keys` or `queries` is at most 0.5; these may lead to states that the task never has.
  - A step's values can be replaced at no loss (`alone` ≥ 0.95).
  - The program has more consecutive steps than the model has layers.
- **unknown**: anything else. Models below 99 % accuracy are *not learned*.

Where the model has layers to spare, a step may be spread over several. Then a program is different only if
`spread`, the lower of `cut` and `levels` with every step in every layer, is at most 0.75 too.

A model that differs from every program solves its task in another way. Mostly, its attention prefers some keys by
content, *and* its values carry that content, so neither looking nor averaging alone describes it.

"""


VERDICTS = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
"""Between these, `verdicts.py` writes what comparisons say of the models."""


def page(findings: Findings, controls: Findings, before: str = "") -> str:
    """The whole page in Markdown.

    Args:
        findings: Of the trained models.
        controls: Of the compiled programs, each against every program of its mechanism.
        before: The page as it was: what comparisons say of the models is kept.
    """
    by_mechanism = [(name, list(of_one)) for name, of_one in groupby(findings, key=lambda one: one["mechanism"])]
    parts = [INTRODUCTION + "## Shapes\n\n" + _shapes(), "## Labels by mechanism\n\n" + _summary(by_mechanism)]
    parts.append("## Verdicts\n\n" + _verdicts(before))
    parts.append("## Controls: the programs, compiled\n\n" + _controls(controls))
    return "\n\n".join(parts) + "\n"


def _verdicts(before: str) -> str:
    """Return the verdicts of `compare` on the models, as they stand on the page."""
    begin, end = VERDICTS
    kept = before.partition(begin)[2].partition(end)[0].strip("\n")
    about = """\
What `rasplens.compare` says of the models of seeds 1 and 2, on which no threshold was chosen. Written by
`python -m lab.natural.verdicts --config standard --seeds 1,2 --write docs/natural-models.md`.

The labels are made class by class, and with queries patched, since verdicts are. That was added after the verdicts
on seed 1 had been seen: by labels that average over inputs and patch no queries, 91.5 % had been right, and none
wrong. The verdicts on seed 2 had not been seen."""
    return "\n".join([f"{about}\n", begin, *([kept] if kept else []), end])


def _shapes() -> str:
    rows = [
        [
            f"`{name}`",
            str(shape.n_heads),
            "ReLU" if shape.d_mlp else "none",
            shape.normalization,
            "one more than needed" if shape.more_layers else "as many as needed",
        ]
        for name, shape in SHAPES.items()
    ]
    return table(["shape", "heads a layer", "MLPs", "layer norm", "layers"], rows)


def _summary(by_mechanism: Sequence[tuple[str, Findings]]) -> str:
    rows = []
    for name, of_one in by_mechanism:
        models = {one["model"]: one["figures"]["accuracy"] >= LEARNED_FROM for one in of_one}
        learned = f"{sum(models.values())} of {len(models)}"
        for program in get_mechanism(name).programs:
            labels = [one["label"] for one in of_one if one["program"] == program]
            rows.append([name, learned, f"`{program}`", *(str(labels.count(label)) for label in LABELS)])
    return table(["mechanism", "learned", "program", *LABELS], rows)


def _controls(controls: Findings) -> str:
    """How many of the programs, compiled, the same tests label as they should."""
    own = [one["model"].rsplit("-", 1)[1] == one["program"] for one in controls]
    right = sum((one["label"] == "same") == is_own for one, is_own in zip(controls, own, strict=True))
    return (
        "The same tests on each program compiled, against each program of its mechanism. "
        f"{right} of {len(controls)} labels are right. Programs of more than three layers are left "
        "out. Every label with its figures is in `lab/natural/truth.json`, of the trained models as well."
    )
