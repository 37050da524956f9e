"""Tasks of one's own from a layout: what stands in its fields is drawn or computed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rasplens.compile import run
from rasplens.compile.rasp import SOp, Value
from rasplens.compile.rasp.values import is_value, value_key
from rasplens.errors import RaspLensError
from rasplens.tasks.own.assembly import N_LOOKED_AT, AnswerKey, TaskSettings, assemble, checked, in_order, listed
from rasplens.tasks.own.layout import InputTemplate, parse_layout, read_positions
from rasplens.tasks.own.padding import PADDING, Side, check_side, padded, unpadded
from rasplens.tasks.readout import Readout
from rasplens.tasks.task import Task

MOST_TRIES = 1_000
"""How often an input is drawn again before its conditions are taken to be impossible."""

Fields = Mapping[str, Sequence[Value]]
"""The tokens in the fields of a layout, by name."""

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
    pad: Side = "right",
    padding: Value = PADDING,
    readout: Readout = "label",
) -> Task:
    """A task of inputs in one layout.

    With fields of variable length, `{x:1-6}`, inputs are filled up to the length of the longest. The padding is a
    token like any other: models and programs see it. Answers are only read at an input's own tokens.

    Args:
        name: For people and files.
        layout: A template of fixed tokens and fields, such as `"BOS {x:6} SEP {y:6}"`; its positions are called
            BOS, x1 to x6, SEP, y1 to y6.
        tokens: What can stand in the fields: for all of them, or by field.
        answers: From the tokens of an input, without padding, the right answers at the positions where they are
            read (a single one if it is read at one); or a program, whose values they are. By default the next
            token.
        read: Where answers are read: "every" position, the "last" one, "after SEP" for that token and all that
            follow, "before y" for the positions whose next token is y's, or names of positions.
        sample: Draws the fields that are not computed; by default every token, and every length, is drawn
            independently.
        computed: By field, what stands there, from the fields that were drawn.
        distinct: Fields whose tokens all differ.
        condition: What the fields have to satisfy; inputs are drawn again until they do.
        outputs: The possible answers; by default those of some thousand inputs, or the tokens if all are such.
        causal: Whether positions see only the past.
        held_out: Inputs that are never trained on; by default one in five, by a hash.
        programs: Programs that solve the task.
        pad: Where inputs of variable length are filled up: on the "right", the "left", or on "both" sides, which
            puts their tokens at positions that vary.
        padding: With which token.
        readout: How logits give an answer: the highest is its "label"; those above 0 are its "labels", several at
            once, which `answers` gives as a tuple or a set; or the only logit is a "number".

    Raises:
        RaspLensError: If layout, tokens, positions or answers make no sense, or hardly an input fulfils the
            conditions.
    """
    check_side(pad)
    shape = parse_layout(layout)
    n, varies = len(shape.names(shape.longest)), shape.is_variable
    by_field = _tokens_by_field(shape, tokens, computed or {})
    draw = sample or _independent(shape, by_field, distinct, computed or {})

    def one(rng: np.random.Generator) -> list[Value]:
        for _ in range(MOST_TRIES):
            fields = {key: tuple(value) for key, value in draw(rng).items()}
            fields |= {key: tuple(compute(fields)) for key, compute in (computed or {}).items()}
            differ = all(len(set(map(value_key, fields[key]))) == len(fields[key]) for key in distinct)
            if differ and (condition is None or condition(fields)):
                return padded(shape.filled(fields), n, padding, pad, rng) if varies else shape.filled(fields)
        raise RaspLensError(f"None of {MOST_TRIES:,} inputs drawn for the task {name!r} satisfies its conditions.")

    vocab = _vocab(shape, by_field, one)
    given = (
        None
        if held_out is None
        else [_filled_up(row, n, padding, pad) for row in held_out]
        if varies
        else held_out
    )
    positions = tuple(map(str, range(n))) if varies else shape.names(shape.longest)
    settings = TaskSettings(
        name=name,
        outputs=outputs,
        causal=causal,
        held_out=given,
        programs=programs or {},
        padding=padding if varies else None,
        readout=readout,
    )
    return assemble(settings, vocab, positions, one, _questions(settings, shape, read, answers))


def _filled_up(row: Sequence[Value], n: int, padding: Value, pad: Side) -> list[Value]:
    """A held-out input with or without its padding: it is held out wherever it is padded."""
    _, own = unpadded(row, padding)
    return padded(own, n, padding, "right" if pad == "both" else pad, np.random.default_rng(0))


def _questions(
    settings: TaskSettings, layout: InputTemplate, read: str | Sequence[str], answers: Answers | None
) -> AnswerKey:
    """Where answers are read, and what is right there."""
    name, readout = settings.name, settings.readout
    places_of_longest = read_positions(layout, read)  # refuses what names no position
    if answers is None and not settings.causal:
        raise RaspLensError(
            "With causal=False, positions see their next tokens, which are the answers. Give other `answers`."
        )
    if answers is None and len(layout.names(layout.longest)) - 1 in places_of_longest:
        raise RaspLensError("The last position has no next token: give `answers`, or read elsewhere.")

    def own(tokens: list[Value]) -> tuple[int, list[Value]]:
        return unpadded(tokens, settings.padding) if layout.is_variable else (0, tokens)

    def places(tokens: list[Value]) -> list[int]:
        first, inner = own(tokens)
        spans = layout.spans(inner)
        if spans is None:  # not in this layout: out of distribution
            return list(range(first, first + len(inner))) if layout.is_variable else list(places_of_longest)
        return [first + place for place in read_positions(layout, read, spans)]

    def answered(tokens: list[Value]) -> Sequence[Value] | None:
        (first, inner), asked = own(tokens), places(tokens)
        if layout.is_variable and layout.spans(inner) is None:
            return None
        if answers is None:
            return [checked(name, tokens[place + 1], readout) for place in asked]
        if isinstance(answers, SOp):
            values = run(answers, tokens, causal=settings.causal)
            return [None if values[place] is None else checked(name, values[place], readout) for place in asked]
        try:
            found = [checked(name, one, readout) for one in listed(answers(inner))]
        except RaspLensError:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise RaspLensError(f"`answers` of {name!r} fails on {inner}: {kind}: {error}.") from error
        if len(found) == len(inner) != len(asked):
            found = [found[place - first] for place in asked]
        if len(found) != len(asked):
            raise RaspLensError(
                f"`answers` gives {len(found)} answers for {inner}; they are read at {len(asked)} positions."
            )
        return found

    return AnswerKey(places, answered)


def _tokens_by_field(
    layout: InputTemplate, tokens: Sequence[Value] | Mapping[str, Sequence[Value]], computed: Mapping[str, Any]
) -> dict[str, tuple[Value, ...]]:
    if isinstance(tokens, Mapping):
        if unknown := [name for name in (*tokens, *computed) if name not in layout.fields]:
            raise RaspLensError(f"The layout has no field {unknown[0]!r}. It has {', '.join(layout.fields)}.")
        missing = [name for name in layout.fields if name not in tokens and name not in computed]
        if missing:
            raise RaspLensError(f"`tokens` has no entry for the field {missing[0]!r}.")
        return {name: tuple(tokens.get(name, ())) for name in layout.fields}
    if unknown := [name for name in computed if name not in layout.fields]:
        raise RaspLensError(f"The layout has no field {unknown[0]!r}. It has {', '.join(layout.fields)}.")
    return dict.fromkeys(layout.fields, tuple(tokens))


def _independent(
    layout: InputTemplate,
    tokens: Mapping[str, tuple[Value, ...]],
    distinct: Sequence[str],
    computed: Mapping[str, Any],
) -> Draw:
    """Every token of a field drawn by itself; where they have to differ, without repetition."""
    if unknown := [name for name in distinct if name not in layout.fields]:
        raise RaspLensError(
            f"The layout has no field {unknown[0]!r} that could be distinct. It has {', '.join(layout.fields)}."
        )
    for name, field in layout.fields.items():
        if name not in computed and len(tokens[name]) < (field.most if name in distinct else 1):
            raise RaspLensError(f"There are {len(tokens[name])} tokens for the {field.most} places of {name!r}.")

    def one(rng: np.random.Generator, name: str) -> list[Value]:
        field = layout.fields[name]
        n = int(rng.integers(field.least, field.most + 1)) if field.is_variable else field.most
        return [tokens[name][i] for i in rng.choice(len(tokens[name]), n, replace=name not in distinct)]

    return lambda rng: {name: one(rng, name) for name in layout.fields if name not in computed}


def _vocab(
    layout: InputTemplate,
    tokens: Mapping[str, tuple[Value, ...]],
    one: Callable[[np.random.Generator], list[Value]],
) -> tuple[Value, ...]:
    """All tokens: those that are named, and those that a sampler or a computed field brings besides."""
    named = [token for field in tokens.values() for token in field]
    if strange := [token for token in named if not is_value(token) or token is None]:
        raise RaspLensError(f"A token must be a bool, int, float, str or a tuple of those; got {strange[0]!r}.")
    rng = np.random.default_rng(2)
    drawn = [token for _ in range(N_LOOKED_AT) for token in one(rng)]
    fixed = [part.token for part in layout.parts if part.token is not None]
    return in_order([*named, *fixed, *drawn])
