"""Tasks of one's own from a layout: what stands in its fields is drawn or computed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rasplens.compile import run
from rasplens.compile.rasp import SOp, Value
from rasplens.compile.rasp.values import is_value, value_key
from rasplens.errors import RaspLensError
from rasplens.tasks.own.assembly import N_LOOKED_AT, assemble, in_order, listed
from rasplens.tasks.own.layout import Layout, parse_layout, read_positions
from rasplens.tasks.task import Task

MOST_TRIES = 1_000
"""How often an input is drawn again before its conditions are taken to be impossible."""

Fields = Mapping[str, Sequence[Value]]
"""What stands in the fields of a layout."""

Draw = Callable[[np.random.Generator], Fields]
Answers = Callable[[list[Value]], Any] | SOp


def build_task(
    name: str,
    layout: str,
    *,
    tokens: Sequence[Value] | Mapping[str, Sequence[Value]],
    answers: Answers | None = None,
    read: str | Sequence[str] = "every",
    sample: Draw | None = None,
    computed: Mapping[str, Callable[[dict[str, tuple[Value, ...]]], Sequence[Value]]] | None = None,
    distinct: Sequence[str] = (),
    condition: Callable[[dict[str, tuple[Value, ...]]], bool] | None = None,
    outputs: Sequence[Value] | None = None,
    causal: bool = True,
    held_out: Sequence[Sequence[Value]] | None = None,
    programs: Mapping[str, SOp] | None = None,
) -> Task:
    """A task of inputs in one layout.

    Args:
        name: For people and files.
        layout: A template of fixed tokens and fields, such as `"BOS {x:6} SEP {y:6}"`; its positions are called
            BOS, x1 to x6, SEP, y1 to y6.
        tokens: What can stand in the fields: for all of them, or by field.
        answers: From the tokens of an input, the right answers at the positions where they are read (a single one
            if it is read at one); or a program, whose values they are. By default the next token.
        read: Where answers are read: "every" position, the "last" one, "after SEP" for that token and all that
            follow, "before y" for the positions whose next token is y's, or names of positions.
        sample: Draws the fields that are not computed; by default every token is drawn independently.
        computed: By field, what stands there, from the fields that were drawn.
        distinct: Fields whose tokens all differ.
        condition: What the fields have to satisfy; inputs are drawn again until they do.
        outputs: The possible answers; by default those of some thousand inputs, or the tokens if all are such.
        causal: Whether positions see only the past.
        held_out: Inputs that are never trained on; by default one in five, by a hash.
        programs: Programs that solve the task.

    Raises:
        RaspLensError: If layout, tokens, positions or answers make no sense, or hardly an input fulfils the
            conditions.
    """
    shape = parse_layout(layout)
    by_field = _tokens_by_field(shape, tokens, computed or {})
    draw = sample or _independent(shape, by_field, distinct, computed or {})

    def one(rng: np.random.Generator) -> list[Value]:
        for _ in range(MOST_TRIES):
            fields = {key: tuple(value) for key, value in draw(rng).items()}
            fields |= {key: tuple(compute(fields)) for key, compute in (computed or {}).items()}
            differ = all(len(set(map(value_key, fields[key]))) == len(fields[key]) for key in distinct)
            if differ and (condition is None or condition(fields)):
                return shape.filled(fields)
        raise RaspLensError(f"{MOST_TRIES:,} inputs of the task {name!r} were drawn; none fulfils its conditions.")

    vocab = _vocab(shape, by_field, one)
    places = read_positions(shape, read)
    answered = _answers(answers, places, causal, len(shape.positions))
    return assemble(name, vocab, shape.positions, one, answered, places, outputs, causal, held_out, programs or {})


def _answers(
    answers: Answers | None, places: tuple[int, ...], causal: bool, n: int
) -> Callable[[list[Value]], list[Value]]:
    """The right answers at the positions where they are read."""
    if answers is None:
        if not causal:
            raise RaspLensError(
                "The answers are the next tokens: where positions see all, they would see the answers."
            )
        if n - 1 in places:
            raise RaspLensError("Nothing follows the last position: say `answers`, or read elsewhere.")
        return lambda tokens: [tokens[place + 1] for place in places]
    if isinstance(answers, SOp):
        program = answers
        return lambda tokens: [run(program, tokens, causal=causal)[place] for place in places]
    function = answers

    def checked(tokens: list[Value]) -> list[Value]:
        found = listed(function(tokens))
        if len(found) == n and len(places) != n:
            found = [found[place] for place in places]
        if len(found) != len(places):
            raise RaspLensError(
                f"`answers` gives {len(found)} answers for {tokens}; they are read at {len(places)} positions."
            )
        return found

    return checked


def _tokens_by_field(
    layout: Layout, tokens: Sequence[Value] | Mapping[str, Sequence[Value]], computed: Mapping[str, Any]
) -> dict[str, tuple[Value, ...]]:
    if isinstance(tokens, Mapping):
        if unknown := [name for name in (*tokens, *computed) if name not in layout.fields]:
            raise RaspLensError(f"The layout has no field {unknown[0]!r}. It has {', '.join(layout.fields)}.")
        missing = [name for name in layout.fields if name not in tokens and name not in computed]
        if missing:
            raise RaspLensError(f"`tokens` does not say what can stand in {missing[0]!r}.")
        return {name: tuple(tokens.get(name, ())) for name in layout.fields}
    if unknown := [name for name in computed if name not in layout.fields]:
        raise RaspLensError(f"The layout has no field {unknown[0]!r}. It has {', '.join(layout.fields)}.")
    return dict.fromkeys(layout.fields, tuple(tokens))


def _independent(
    layout: Layout, tokens: Mapping[str, tuple[Value, ...]], distinct: Sequence[str], computed: Mapping[str, Any]
) -> Draw:
    """Every token of a field drawn by itself; where they have to differ, without repetition."""
    if unknown := [name for name in distinct if name not in layout.fields]:
        raise RaspLensError(
            f"The layout has no field {unknown[0]!r} to be distinct. It has {', '.join(layout.fields)}."
        )
    for name, places in layout.fields.items():
        if name not in computed and len(tokens[name]) < (len(places) if name in distinct else 1):
            raise RaspLensError(f"There are {len(tokens[name])} tokens for the {len(places)} places of {name!r}.")

    def one(rng: np.random.Generator, name: str) -> list[Value]:
        n = len(layout.fields[name])
        return [tokens[name][i] for i in rng.choice(len(tokens[name]), n, replace=name not in distinct)]

    return lambda rng: {name: one(rng, name) for name in layout.fields if name not in computed}


def _vocab(
    layout: Layout, tokens: Mapping[str, tuple[Value, ...]], one: Callable[[np.random.Generator], list[Value]]
) -> tuple[Value, ...]:
    """All tokens: those that are named, and those that a sampler or a computed field brings besides."""
    named = [token for field in tokens.values() for token in field]
    if strange := [token for token in named if not is_value(token) or token is None]:
        raise RaspLensError(f"A token is a bool, int, float, str or a tuple of those; got {strange[0]!r}.")
    rng = np.random.default_rng(2)
    drawn = [token for _ in range(N_LOOKED_AT) for token in one(rng)]
    return in_order([*named, *layout.fixed.values(), *drawn])
