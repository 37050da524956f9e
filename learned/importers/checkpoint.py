"""Models from elsewhere: our own files, and state dicts of TransformerLens."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rasplens.compile.rasp import Value
from rasplens.errors import RaspLensError
from rasplens.learned.importers.readings import Declared, difference, readings
from rasplens.learned.importers.state_dicts import StateDict, our_names, read_state_dict
from rasplens.learned.learned_model import LearnedModel, load_learned
from rasplens.model import Config, Transformer
from rasplens.model.storage import check_size
from rasplens.tasks import Task, as_task
from rasplens.tasks.task import Ids

N_TRIED = 500
"""Held-out inputs on which an imported model is tried."""

DOUBTFUL = 0.9
"""An import that gets a smaller share of the answers right is warned about."""

TELLING = 0.005
"""Shares of right answers that differ by less do not tell two readings of a state dict apart."""

CHOSEN_BY_HAND = {"positions", "activation"}
"""Settings without a value that nearly always holds."""


def import_checkpoint(
    path: str | Path,
    task: Task | str,
    n_heads: int | None = None,
    *,
    positions: str | None = None,
    activation: str | None = None,
    normalization: str | None = None,
    attn_scale: float | None = None,
    tokens: Mapping[Value, int] | None = None,
) -> LearnedModel:
    """A user's own model for a task.

    Args:
        path: A file that RASPLens wrote, or a state dict of TransformerLens (`.pt`; see
            `rasplens.learned.importers.state_dicts`), whose architecture is read from names and shapes and whose
            attention mask is the task's. Positions behind the task's last are left out.
        task: What it learned, or its name.
        n_heads: Heads per layer, needed for the state dict of a bridge.
        positions: "standard", "shortformer", "rotary" or "none"; of a state dict, as the rest. What shapes do not
            tell is taken to be what is commonest: standard positions, ReLU, no layer norm, scores divided by
            √d_head.
        activation: "relu", "gelu", "gelu_new" or "silu".
        normalization: "none", or "LNPre" for layer norm without weights.
        attn_scale: What attention scores are divided by.
        tokens: Of a state dict with a larger vocabulary, its id of each of the task's tokens and answers. The rest
            of its vocabulary is left out.

    Warns:
        UserWarning: If a state dict gives few answers right, or another reading of what was not declared fits
            better, or as well; it says which.

    Raises:
        StorageError: If the file is missing, damaged or of no known kind.
        RaspLensError: If the model does not fit the task, or what is declared; the message says what differs.
    """
    if isinstance(path, Mapping):
        raise RaspLensError(
            "import_checkpoint takes a file, not a state dict. Write one first: torch.save(state_dict, 'mine.pt')."
        )
    path, task = Path(path), as_task(task)
    check_size(path)
    declared = Declared(n_heads, positions, activation, normalization, attn_scale)
    model = load_learned(path) if is_safetensors(path) else _foreign(path, task, declared, tokens)
    if model.task != task.name:
        raise RaspLensError(f"{path} learned the task {model.task!r}, not {task.name!r}.")
    check_fits(model.transformer.config, task, str(path), model.prefix)
    return model


def check_fits(config: Config, task: Task, what: str, prefix: Sequence[int] = ()) -> None:
    """Raises where a model's shape does not fit a task. Its context may be longer.

    Args:
        config: The model's.
        task: The task.
        what: The model, for messages.
        prefix: Ids that stand before every input of the model; none is that of a token.

    Raises:
        RaspLensError: Naming every size that differs.
    """
    sizes = {
        "tokens (d_vocab)": (config.d_vocab, len(task.vocab) + len(set(prefix))),
        "logits (d_vocab_out)": (config.d_vocab_out, task.n_logits),
        "positions (n_ctx)": (config.n_ctx, len(prefix) + task.n_ctx),
    }
    differing = [
        f"{got} {name} where it needs {want}"
        for name, (got, want) in sizes.items()
        if got < want or (got > want and "n_ctx" not in name)
    ]
    if differing:
        raise RaspLensError(f"{what} does not fit the task {task.name!r}: it has {', '.join(differing)}.")


def is_safetensors(path: Path) -> bool:
    """Whether a file starts as safetensors do: the size of a header, then the header's brace."""
    with path.open("rb") as file:
        return file.read(9)[8:] == b"{"


def _foreign(path: Path, task: Task, declared: Declared, tokens: Mapping[Value, int] | None) -> LearnedModel:
    state = our_names(read_state_dict(path), declared.n_heads, str(path))
    state = _shortened(state, task.n_ctx)
    if tokens is not None:
        state = _for_tokens(state, task, tokens, str(path))
    possible = readings(state, declared, task.n_ctx, str(path))
    check_fits(possible[0], task, str(path))
    mask = task.mask(possible[0].n_layers)
    if state.mask is not None and state.mask.shape == mask.shape[1:] and (mask & ~state.mask.astype(bool)).any():
        raise RaspLensError(f"{path} stores a mask that hides positions which the task {task.name!r} shows.")
    transformers = [Transformer(config, state.weights, mask) for config in possible]
    _warn_of_doubts(transformers, task, path)
    return LearnedModel(transformers[0], task.name, {"origin": f"imported from {path.name}"})


def _shortened(state: StateDict, n_ctx: int) -> StateDict:
    """A state dict without the positions that no input of a task has."""
    name = "pos_embed.W_pos"
    kept = {name: state.weights[name][:n_ctx]} if name in state.weights else {}
    mask = None if state.mask is None else state.mask[:n_ctx, :n_ctx]
    sines = None if state.rotary_sin is None else state.rotary_sin[:n_ctx]
    return replace(state, weights={**state.weights, **kept}, mask=mask, rotary_sin=sines)


def _for_tokens(state: StateDict, task: Task, tokens: Mapping[Value, int], what: str) -> StateDict:
    """A state dict with only a task's tokens and answers, in the task's order."""
    rows = _ids_of(task.vocab, tokens, what)
    columns = _ids_of(task.outputs, tokens, what)
    kept = {"embed.W_E": (rows, 0), "unembed.W_U": (columns, 1), "unembed.b_U": (columns, 0)}
    weights = dict(state.weights)
    for name, (ids, axis) in kept.items():
        if name not in weights:
            continue
        if max(ids) >= weights[name].shape[axis]:
            size = weights[name].shape[axis]
            raise RaspLensError(
                f"`tokens` must give ids below {size}, the size of {name} of {what}; got {max(ids)}."
            )
        weights[name] = weights[name].take(ids, axis)
    return replace(state, weights=weights)


def _ids_of(values: Sequence[Value], tokens: Mapping[Value, int], what: str) -> list[int]:
    if missing := [value for value in values if value not in tokens]:
        raise RaspLensError(f"`tokens` has no id for {missing[0]!r}; give the id that {what} has for it.")
    return [tokens[value] for value in values]


def _warn_of_doubts(read: list[Transformer], task: Task, path: Path) -> None:
    """Warns where a model is often wrong, or a reading that is as possible as the first fits as well or better."""
    ids = task.held_out[:N_TRIED]
    right = [_share_right(transformer, task, ids) for transformer in read]
    best = int(np.argmax(right))
    said = f"{path} gets {right[0]:.3f} of the answers of {task.name!r} right"
    if right[best] > right[0] + TELLING and 1 - right[best] < (1 - right[0]) / 2:
        needed = _in_words(difference(read[0].config, read[best].config))
        doubt = (
            f"{said} as it was read, and {right[best]:.3f} with {needed}. Its shapes do not tell which it has: "
            "declare it."
        )
    elif right[0] < DOUBTFUL:
        targets = task.target(ids)
        asked = [column[column >= 0] for column in targets.T]
        commonest = sum(np.bincount(column).max() for column in asked if len(column)) / sum(map(len, asked))
        doubt = (
            f"{said}; always giving the most common answer would get {commonest:.3f}. If it did learn the task, "
            "its tokens or layout are not the task's, or its architecture has something that shapes do not show."
        )
    else:
        others = [difference(read[0].config, other.config) for other in read]
        as_good = [
            other
            for other, share in zip(others, right, strict=True)
            if other and set(other) <= CHOSEN_BY_HAND and share >= right[0] - TELLING
        ]
        if not as_good:
            return
        doubt = f"{said}, and as many with {' or '.join(map(_in_words, as_good))}: declare which it has."
    warnings.warn(doubt, stacklevel=4)


def _in_words(declared: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in declared.items())


def _share_right(transformer: Transformer, task: Task, ids: Ids) -> float:
    try:
        return task.accuracy(transformer, ids).token
    except RaspLensError:  # a logit is not finite
        return 0.0
