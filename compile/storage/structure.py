"""The structure of every compiled model: a file that says otherwise was not written by `save`.

A checksum tells whether a file was changed; it does not keep anybody from writing one. These checks do not show
that the weights compute the program: that is what `verify` is for.
"""

import math
from collections.abc import Iterator

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.anatomy import Anatomy
from rasplens.compile.rasp import Encoding
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.values import is_value, value_key
from rasplens.compile.variable import Axes, Variable
from rasplens.errors import RaspLensError
from rasplens.model import hook_names


def check_structure(anatomy: Anatomy) -> None:
    """Raises where the parts of a compiled model do not fit each other.

    Raises:
        RaspLensError: With the first thing that is wrong.
    """
    for fault in (*_of_inputs(anatomy), *_of_variables(anatomy), *_of_parts(anatomy)):
        raise RaspLensError(fault)


def _of_inputs(anatomy: Anatomy) -> Iterator[str]:
    config, space = anatomy.transformer.config, anatomy.inputs
    if not (isinstance(anatomy.has_bos, bool) and isinstance(anatomy.has_pad, bool)):
        yield f"has_bos and has_pad must be true or false; got {anatomy.has_bos!r} and {anatomy.has_pad!r}"
    elif config.d_vocab != len(space.vocab) + anatomy.has_bos + anatomy.has_pad:
        yield f"its vocabulary of {len(space.vocab)} tokens does not fit d_vocab={config.d_vocab}"
    elif config.n_ctx != space.max_len + anatomy.has_bos:
        yield f"its max_len={space.max_len} does not fit n_ctx={config.n_ctx}"
    if space.visible.shape != (space.max_len, space.max_len):
        yield f"its mask has shape {space.visible.shape}; it must be square, of max_len={space.max_len}"
    if not all(_are_sequences(ids, space) for ids in space.domain or ()):
        yield "its domain contains invalid sequences"
    if not isinstance(anatomy.program, rasp.SOp):
        yield f"its program is not an s-op but {anatomy.program!r}"


def _are_sequences(ids: np.ndarray, space: InputSpace) -> bool:
    """Whether token ids are sequences of a space, of one length."""
    has_length = ids.ndim == 2 and 1 <= ids.shape[1] <= space.max_len
    return has_length and bool(((ids >= 0) & (ids < len(space.vocab))).all())


def _of_variables(anatomy: Anatomy) -> Iterator[str]:
    config = anatomy.transformer.config
    points = hook_names(config)
    for variable in anatomy.variables.values():
        name = variable.name
        if not isinstance(name, str):
            yield f"the name of a variable must be a str; got {name!r}"
        if not (isinstance(variable.is_view, bool) and isinstance(variable.is_auxiliary, bool)):
            yield f"is_view and is_auxiliary of {name!r} must be true or false"
        if not isinstance(variable.kind_of, str | None):
            yield f"kind_of of {name!r} must be a name or None; got {variable.kind_of!r}"
        if variable.written_at not in points:
            yield f"{name!r} is written at {variable.written_at!r}, which is not a hook point"
        if not _can_be_values(variable):
            yield f"{name!r} cannot have the values {variable.values}"
        if variable.columns.shape != (config.d_model, variable.columns.shape[1]):
            yield f"{name!r} is read by columns of shape {variable.columns.shape}"
        if not (np.abs(variable.columns) <= np.finfo(np.float32).max).all():
            yield f"{name!r} is read by columns that are not finite"
        if not _lies_in_stream(variable, config.d_model):
            yield f"{name!r} lies outside the residual stream"
    output = anatomy.variables.get(anatomy.output)
    if output is None:
        yield f"its output {anatomy.output!r} is not one of its variables"
    elif output.columns.shape[1] != config.d_vocab_out:
        yield f"its output has {output.columns.shape[1]} coordinates, its transformer {config.d_vocab_out} logits"


def _can_be_values(variable: Variable) -> bool:
    """Whether they are different values of RASP; numbers in their order, as a float holds them."""
    values = variable.values
    if variable.encoding is Encoding.CATEGORICAL:
        return all(map(is_value, values)) and len(set(map(value_key, values))) == len(values)
    are_numbers = all(isinstance(value, bool | int | float) and math.isfinite(value) for value in values)
    return are_numbers and all(np.diff([float(value) for value in values]) > 0)


def widths(encoding: Encoding, n_values: int) -> tuple[int, ...]:
    """How many coordinates a variable can have: one for each value, or one for the number and one for whether."""
    return (n_values,) if encoding is Encoding.CATEGORICAL else (1, 2)


def _lies_in_stream(variable: Variable, d_model: int) -> bool:
    place = variable.place
    if isinstance(place, Axes):
        return place.directions.ndim == 1 and all(0 <= i < d_model for i in place.directions.tolist())
    rank = len(place.writes)
    return place.writes.shape == (rank, d_model) and place.reads.shape == (d_model, rank)


def _of_parts(anatomy: Anatomy) -> Iterator[str]:
    config = anatomy.transformer.config
    for (layer, head), name in anatomy.heads.items():
        if not (_is_place(layer, config.n_layers) and _is_place(head, config.n_heads) and isinstance(name, str)):
            yield f"there is no head {head!r} in layer {layer!r} for {name!r}"
    for (layer, start, end), name in anatomy.neurons.items():
        is_there = _is_place(layer, config.n_layers) and _is_place(start, config.d_mlp)
        if not (is_there and _is_place(end - 1, config.d_mlp) and start < end and isinstance(name, str)):
            yield f"there are no neurons {start!r} to {end!r} in layer {layer!r} for {name!r}"


def _is_place(place: object, n: int) -> bool:
    return isinstance(place, int) and not isinstance(place, bool) and 0 <= place < n
