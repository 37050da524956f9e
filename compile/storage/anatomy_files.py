"""A compiled model as one file: weights, anatomy, and the program with its functions as tables.

A Python function cannot be stored safely, but a compiled program calls its functions on finitely many
values: their results are stored, and the program that is loaded looks them up. So a loaded model can be
called, verified, intervened on and compared like the one that was saved, without the program's source.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.anatomy import Anatomy
from rasplens.compile.frontend.defined_program import defined_program
from rasplens.compile.frontend.undefined_inputs import DefinedOn
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.interpreter import expressions
from rasplens.compile.rasp.language import PRIMITIVES
from rasplens.compile.rasp.values import plain, value_key
from rasplens.compile.storage.structure import check_structure, widths
from rasplens.compile.variable import Axes, ObliqueDirections, Variable
from rasplens.errors import RaspLensError
from rasplens.model import StorageError, Transformer, load, load_provenance, save
from rasplens.model.storage import reading

_KIND = "compiled program"

Json = dict[str, Any]

Values = Callable[[rasp.SOp], Sequence[Value]]
"""The values of an s-op, as functions meet them."""


def save_anatomy(anatomy: Anatomy, path: str | Path) -> None:
    """Writes a compiled model to one file, which `rasplens.model.load` reads as a transformer, too.

    Raises:
        StorageError: If the folder does not exist.
    """
    save(anatomy.transformer, path, {"kind": _KIND, **anatomy_to_json(anatomy)})


def anatomy_to_json(anatomy: Anatomy) -> Json:
    """All of a compiled model but its weights, in JSON values."""
    space = anatomy.inputs
    return {
        "vocab": [_to_json(token) for token in space.vocab],
        "visible": space.visible.astype(int).tolist(),
        "domain": None if space.domain is None else [ids.tolist() for ids in space.domain],
        "has_bos": anatomy.has_bos,
        "has_pad": anatomy.has_pad,
        "is_partial": anatomy.partial is not None,
        "output": anatomy.output,
        "variables": [_variable_to_json(variable) for variable in anatomy.variables.values()],
        "heads": [[*place, name] for place, name in anatomy.heads.items()],
        "neurons": [[*place, name] for place, name in anatomy.neurons.items()],
        "program": _program_to_json(anatomy.program, anatomy.arguments),
    }


def load_anatomy(path: str | Path) -> Anatomy:
    """The anatomy that `save_anatomy` wrote, with the weights.

    Raises:
        StorageError: If the file is missing, truncated, edited, foreign, or holds no compiled program.
    """
    found = load_provenance(path)
    if found.get("kind") != _KIND:
        raise StorageError(f"{path} holds a model but not a compiled program: it has no anatomy.")
    transformer = load(path)
    with reading(path, "compiled program"):
        return anatomy_from_json(found, transformer)


def anatomy_from_json(found: Json, transformer: Transformer) -> Anatomy:
    """The anatomy that `anatomy_to_json` stored, of a transformer.

    Raises:
        RaspLensError: If its parts do not fit each other; or another error of reading values that are not there.
    """
    visible = np.array(found["visible"], dtype=bool)
    visible.flags.writeable = False
    domain = found.get("domain")  # files from before domains have none
    domain = None if domain is None else tuple(np.array(ids, dtype=int) for ids in domain)
    space = InputSpace(tuple(_from_json(token) for token in found["vocab"]), len(visible), visible, domain)
    variables = [_variable_from_json(variable, transformer.config.d_model) for variable in found["variables"]]
    program = _program_from_json(found["program"])
    anatomy = Anatomy(
        program=program,
        inputs=space,
        transformer=transformer,
        has_bos=found["has_bos"],
        has_pad=found["has_pad"],
        variables={variable.name: variable for variable in variables},
        output=found["output"],
        heads={(layer, head): name for layer, head, name in found["heads"]},
        neurons={(layer, start, end): name for layer, start, end, name in found["neurons"]},
        partial=None,
    )
    check_structure(anatomy)
    if not found["is_partial"]:
        return anatomy
    return replace(anatomy, partial=defined_program(program, space, DefinedOn("allow")).whole)


@dataclass(frozen=True)
class Lookup:
    """A function of one or two values, known by its results.

    Attributes:
        rows: The arguments and the result, wherever there is one.
    """

    rows: tuple[tuple[Value, ...], ...]

    @cached_property
    def _results(self) -> dict[tuple[Any, ...], Value]:
        return {tuple(map(value_key, arguments)): result for *arguments, result in self.rows}

    def __call__(self, *arguments: Value) -> Value:
        """The result.

        Raises:
            KeyError: If the program that was stored is undefined there.
        """
        key = tuple(value_key(argument) for argument in arguments)
        if key not in self._results:
            raise KeyError(f"no value for {', '.join(map(repr, arguments))} was stored")
        return self._results[key]


def _variable_to_json(variable: Variable) -> Json:
    rows, columns = np.nonzero(variable.columns)
    return {
        "name": variable.name,
        "encoding": variable.encoding.value,
        "values": [_to_json(value) for value in variable.values],
        "width": variable.columns.shape[1],
        "columns": [rows.tolist(), columns.tolist(), variable.columns[rows, columns].tolist()],
        **_place_to_json(variable.place),
        "written_at": variable.written_at,
        "is_view": variable.is_view,
        "is_auxiliary": variable.is_auxiliary,
        "kind_of": variable.kind_of,
    }


def _variable_from_json(found: Json, d_model: int) -> Variable:
    encoding, width = Encoding(found["encoding"]), found["width"]
    if width not in widths(encoding, len(found["values"])):
        raise RaspLensError(f"{found['name']!r} has {width!r} coordinates for {len(found['values'])} values")
    columns = np.zeros((d_model, width))
    rows, places, entries = found["columns"]
    columns[rows, places] = entries
    return Variable(
        name=found["name"],
        encoding=encoding,
        values=tuple(_from_json(value) for value in found["values"]),
        columns=columns,
        place=_place_from_json(found),
        written_at=found["written_at"],
        is_view=found["is_view"],
        is_auxiliary=found["is_auxiliary"],
        kind_of=found.get("kind_of"),  # files before did not say
    )


def _place_to_json(place: Axes | ObliqueDirections) -> Json:
    if isinstance(place, Axes):
        return {"directions": place.directions.tolist()}
    return {"subspace": {"writes": place.writes.tolist(), "reads": place.reads.tolist()}}


def _place_from_json(found: Json) -> Axes | ObliqueDirections:
    if "directions" in found:
        return Axes(np.array(found["directions"], dtype=int))
    return ObliqueDirections(**{name: np.array(matrix) for name, matrix in found["subspace"].items()})


def _program_to_json(program: rasp.SOp, arguments: Mapping[int, Sequence[Value]]) -> list[Json]:
    """Every expression after what it reads, by place; the program is the last.

    Args:
        program: The program.
        arguments: By place, the values of every s-op, with which functions that are no tables are called.
    """
    ordered = expressions(program)
    place = {id(expr): i for i, expr in enumerate(ordered)}

    def values(sop: rasp.SOp) -> Sequence[Value]:
        return arguments[place[id(sop)]]

    stored = []
    for expr in ordered:
        annotations = {key: _annotation(value) for key, value in expr.annotations.items()}
        stored.append({
            "kind": type(expr).__name__,
            "reads": [place[id(child)] for child in expr.children],
            "annotations": annotations,
            **_content(expr, values),
        })  # fmt: skip
    return stored


def _annotation(value: Any) -> Any:
    return value.value if isinstance(value, Encoding) else value


@singledispatch
def _content(expr: rasp.RASPExpr, values: Values) -> Json:
    """The JSON of an expression, but for what it reads."""
    return {}


@_content.register
def _(expr: rasp.Map, values: Values) -> Json:
    return {"table": _table(expr.f, (expr.inner,), values)}


@_content.register
def _(expr: rasp.SequenceMap, values: Values) -> Json:
    return {"table": _table(expr.f, (expr.fst, expr.snd), values)}


@_content.register
def _(expr: rasp.LinearSequenceMap, values: Values) -> Json:
    return {"factors": [expr.fst_fac, expr.snd_fac]}


@_content.register(rasp.Select)
@_content.register(rasp.SelectBest)
def _(expr: rasp.Select | rasp.SelectBest, values: Values) -> Json:
    predicate = expr.predicate
    is_table = isinstance(predicate, Lookup)
    function = predicate if is_table else lambda key, query: bool(predicate(key, query))
    inputs = expr.keys, expr.queries
    found = {"table": _table(function, inputs, values)}
    if isinstance(expr, rasp.Select) or isinstance(expr.score, rasp.SOp):
        return found
    return {**found, "scores": _table(expr.score, inputs, values)}


@_content.register
def _(expr: rasp.Full, values: Values) -> Json:
    return {"fill": _to_json(expr.fill)}


@_content.register(rasp.ConstantSOp)
@_content.register(rasp.ConstantSelector)
def _(expr: rasp.ConstantSOp | rasp.ConstantSelector, values: Values) -> Json:
    return {"value": _to_json(tuple(expr.value)), "check_length": expr.check_length}


@_content.register
def _(expr: rasp.Aggregate, values: Values) -> Json:
    return {"default": _to_json(expr.default)}


def _table(function: Callable[..., Value], inputs: Sequence[rasp.SOp], values: Values) -> list[Any]:
    """Arguments and result wherever the function has one."""
    if isinstance(function, Lookup):
        return [[_to_json(value) for value in row] for row in function.rows]
    rows = _rows(function, [values(sop) for sop in inputs])
    return [[_to_json(value) for value in row] for row in rows]


def _rows(function: Callable[..., Value], arguments: Sequence[Sequence[Value]]) -> Iterator[tuple[Value, ...]]:
    for at in product(*arguments):
        try:
            yield *at, plain(function(*at))
        except Exception:
            continue  # the program is undefined there, and so is what is stored


def _program_from_json(stored: Sequence[Json]) -> rasp.SOp:
    found: list[Any] = []
    for node in stored:
        if any(i not in range(len(found)) for i in node["reads"]):
            raise RaspLensError(f"the program reads {node['reads']} before they are defined")
        reads = [found[i] for i in node["reads"]]
        annotations = {
            key: Encoding(value) if key == "encoding" else value for key, value in node["annotations"].items()
        }
        found.append(_expression(node, reads, annotations))
    return found[-1]


def _expression(node: Json, reads: list[Any], annotations: Json) -> rasp.RASPExpr:
    if node["kind"] in PRIMITIVES:
        primitive = PRIMITIVES[node["kind"]]
        return rasp.annotate(primitive, **annotations) if annotations else primitive
    kind = _kind(node["kind"])
    if kind in (rasp.Map, rasp.SequenceMap):
        return kind(_lookup(node), *reads, annotations=annotations)
    if kind is rasp.Select:
        return rasp.Select(reads[0], reads[1], _lookup(node), annotations=annotations)
    if kind is rasp.SelectBest:
        keys, queries = reads[:2]
        score = _lookup(node, "scores") if "scores" in node else reads[2]
        return rasp.SelectBest(keys, queries, _lookup(node), score, annotations=annotations)
    if kind is rasp.LinearSequenceMap:
        return rasp.LinearSequenceMap(*reads, *node["factors"], annotations=annotations)
    if kind is rasp.Aggregate:
        return rasp.Aggregate(reads[0], reads[1], _from_json(node["default"]), annotations=annotations)
    if kind is rasp.Full:
        return rasp.Full(_from_json(node["fill"]), annotations=annotations)
    if kind in (rasp.ConstantSOp, rasp.ConstantSelector):
        return kind(_from_json(node["value"]), node["check_length"], annotations=annotations)
    return kind(*reads, annotations=annotations)


def _kind(name: str) -> Any:
    """The class of expressions of a name."""
    kind = getattr(rasp, name, None)
    if not (isinstance(kind, type) and issubclass(kind, rasp.RASPExpr)):
        raise RaspLensError(f"{name!r} is not a RASP expression")
    return kind


def _lookup(node: Json, table: str = "table") -> Lookup:
    return Lookup(tuple(tuple(_from_json(value) for value in row) for row in node[table]))


def _to_json(value: Value) -> Any:
    """A value in JSON: tuples as objects, so that lists stay free, and ints and floats as they are."""
    return {"tuple": [_to_json(part) for part in value]} if isinstance(value, tuple) else value


def _from_json(value: Any) -> Value:
    return tuple(_from_json(part) for part in value["tuple"]) if isinstance(value, dict) else value
