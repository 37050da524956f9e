"""Methods that look for variables, on models whose variables are known: the second board of docs/methods.md.

python -m lab.variables --siit models --write docs/methods.md       models of lab/siit.py among them
"""

import argparse
import json

import pandas as pd

from lab.known_circuits import add_model_arguments, by_kind, known_case, left_out, model_jobs
from lab.page import show
from lab.swept import swept
from rasplens.compare.discovery.variables.scoring import variable_board
from rasplens.errors import RaspLensError
from rasplens.sweeps.job import Row

MEASURES = {
    "interchange": "interchanged where the method is surest",
    "used": "where the variable is used",
    "sites": "sites told apart",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_arguments(parser)
    arguments = parser.parse_args()
    text = tables(swept(model_jobs("lab.variables:scored", arguments), arguments), arguments.seed)
    show(text, arguments.write, "variables")


def scored(programs_of: str, name: str, made: str, seed: int, stored: str | None) -> list[Row]:
    """All methods on all variables of a model."""
    try:
        case = known_case(programs_of, name, made, seed, stored)
    except RaspLensError as error:
        return [{"left_out": str(error).partition(". ")[0]}]
    found = variable_board([case], seed=seed)
    if found.empty:
        return [{"left_out": "no variable can be interchanged"}]
    return json.loads(found.to_json(orient="records", double_precision=15))


def tables(found: pd.DataFrame, seed: int) -> str:
    """Return the text to write: a model's variables count as one, the mean over them."""
    done = found[found["method"].notna()]
    by_model = done.groupby(["program", "kind", "method"], sort=False)[list(MEASURES)].mean().reset_index()
    n_variables = len(done.groupby(["program", "variable"]))
    parts = [
        f"{by_model['program'].nunique()} programs, {n_variables} variables, "
        f"{len(by_model.groupby(['program', 'kind']))} models."
    ]
    for measure, heading in MEASURES.items():
        parts += [f"### {heading.capitalize()}", by_kind(by_model, measure, seed)]
    return "\n\n".join([*parts, *left_out(found)])


if __name__ == "__main__":
    main()
