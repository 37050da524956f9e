"""The anatomy of a compiled model as a table: a row for each variable."""

from typing import Any

from rasplens.compile.anatomy import Anatomy


def anatomy_rows(compiled: Anatomy) -> list[dict[str, Any]]:
    """Return a row for each variable of a compiled model: its encoding, its directions and what computes it."""
    return [
        {
            "variable": name,
            "encoding": variable.encoding.value,
            "values": len(variable.values),
            "directions": _ranges(variable.directions.tolist()),
            "computed by": _computed_by(compiled, name)
            or ("a view of others" if variable.is_view else "embedding"),
        }
        for name, variable in compiled.variables.items()
    ]


def _computed_by(compiled: Anatomy, name: str) -> str:
    """The heads and neurons that compute a variable; nothing if none does."""
    heads = [f"L{layer}H{head}" for (layer, head), made in compiled.heads.items() if made == name]
    neurons = [
        f"L{layer} neurons {start}-{end - 1}"
        for (layer, start, end), made in compiled.neurons.items()
        if made == name
    ]
    return ", ".join([*heads, *neurons])


def _ranges(numbers: list[int]) -> str:
    """Ascending numbers, runs of them as `first-last`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
