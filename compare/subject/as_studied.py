"""From a model and a task to the model under comparison, with everything checked that comparisons rest on."""

import inspect
import itertools
import reprlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from rasplens.compare.subject.live_hooks import check_live
from rasplens.compare.subject.narrowing import narrowed, narrowed_logits
from rasplens.compare.subject.padding import check_left_out, padding_of, warn_of_other_ways
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.compare.subject.vocabulary import GivenVocabulary, Vocabulary, task_vocabulary, vocabulary_of
from rasplens.compile import CompiledModel
from rasplens.errors import RaspLensError
from rasplens.learned import CompressedModel
from rasplens.learned.importers.checkpoint import check_fits
from rasplens.model import HookedModel, transformer_of
from rasplens.model.hook_points import EMBEDDED, act_name
from rasplens.model.transformer import AnyModel, Hooked
from rasplens.tasks import Task, as_task
from rasplens.tasks.task import Ids

TRIED = 100
"""Number of held-out inputs on which the padding is tested."""


def as_studied_model(
    model: AnyModel, task: Task | str, ids: Ids, vocabulary: GivenVocabulary | None = None
) -> StudiedModel:
    """A model on some inputs of a task.

    Args:
        model: A `LearnedModel`, `Transformer`, `HookedModel`, `CompiledModel`, `CompressedModel`, or a
            `TransformerBridge`.
        task: What it is asked.
        ids: The inputs.
        vocabulary: Its vocabulary for the task, or what gives that for a task; if it is not the task's own.

    Raises:
        RaspLensError: If it is no model, does not fit the task, or a hook point that comparisons need is missing
            or not alive.
    """
    task = as_task(task)
    vocabulary = _known_vocabulary(model, task, vocabulary)
    if isinstance(model, CompiledModel):
        vocabulary = vocabulary or vocabulary_of(model, task)
        return StudiedModel(HookedModel(model.transformer), task, ids, vocabulary, tuple(model.heads))
    if isinstance(model, CompressedModel):
        vocabulary = vocabulary or vocabulary_of(model.compiled, task)
        return StudiedModel(HookedModel(model), task, ids, vocabulary, tuple(model.compiled.heads))
    hooked: Any = model
    if (transformer := transformer_of(model)) is not None:
        if vocabulary is not None:
            _check_ids(transformer.config, task, vocabulary)
            transformer, vocabulary = narrowed(transformer, task, vocabulary)
        hooked = HookedModel(transformer)
    if not isinstance(hooked, Hooked):
        what = f"the module {type(model).__name__}" if isinstance(model, torch.nn.Module) else reprlib.repr(model)
        raise RaspLensError(
            "The learned side must be a LearnedModel, Transformer, HookedModel, TransformerBridge, CompiledModel "
            f"or CompressedModel; got {what}. Wrap any other torch module with rasplens.learned.adapt."
        )
    if not hooked.cfg.n_layers:
        raise RaspLensError("The learned model has no layers: it has no heads or neurons that could be compared.")
    if vocabulary is None:
        _check_fits(hooked, task)
    else:
        _check_ids(hooked.cfg, task, vocabulary)
    heads = tuple(itertools.product(range(hooked.cfg.n_layers), range(hooked.cfg.n_heads)))
    own, read = vocabulary or task_vocabulary(task), None
    if not isinstance(hooked, HookedModel):
        own, read = narrowed_logits(own)
    studied = StudiedModel(hooked, task, ids, own, heads, read=read)
    layers = range(studied.n_layers)
    wanted = [act_name(name, layer) for name in ("pattern", "z", "resid_post") for layer in layers] + [EMBEDDED]
    _check_runs(hooked, wanted)
    if not isinstance(hooked, HookedModel):
        check_live(hooked, studied.on(task.held_out[:1]).tokens.to(studied.device), wanted)
    return _with_padding(studied)


def _check_runs(model: Any, wanted: Sequence[str]) -> None:
    """Raises where a model lacks a hook point, or cannot be run as comparisons do."""
    if missing := [point for point in wanted if point not in model.hook_dict]:
        raise RaspLensError(f"The model has no hook point {missing[0]!r}, which comparisons read and edit.")
    parameter = next(model.parameters())
    if parameter.dtype not in (torch.float32, torch.float64):
        raise RaspLensError(
            f"Comparisons run in float32 or float64; the model is {parameter.dtype}. Call its float() first."
        )
    if len(devices := {each.device for each in model.parameters()}) > 1:
        names = " and ".join(sorted(map(str, devices)))
        raise RaspLensError(f"The model is spread over {names}. Put it on one device first.")
    if any(isinstance(part, torch.nn.Dropout) and part.training and part.p > 0 for part in model.modules()):
        raise RaspLensError(
            "The model is in training mode: its dropout makes answers random. Call its eval() first."
        )


def _with_padding(studied: StudiedModel) -> StudiedModel:
    """Return a model that takes padding as it learned to.

    Raises:
        RaspLensError: If it takes no mask where padding is hidden, or positions that do not skip what is hidden.
    """
    padding = padding_of(studied.model, studied.task, studied.vocabulary)
    if padding == "token":
        return studied
    if "attention_mask" not in inspect.signature(studied.model.forward).parameters:
        raise RaspLensError(
            f'The model takes no attention mask, so its padding cannot be {padding}. Set padding="token".'
        )
    few = replace(studied, padding=padding).on(studied.task.held_out[:TRIED])
    is_before = (few.seen.diff(dim=1) > 0).any(dim=1)  # a token stands behind padding
    if padding == "left out" and is_before.any():
        row = is_before.nonzero()[:1, 0]
        check_left_out(few._pass, few.tokens[row], few.seen[row])
    if studied.vocabulary.padding is None:
        warn_of_other_ways(padding, lambda way: float(replace(few, padding=way).right().mean()))
    return replace(studied, padding=padding)


def _known_vocabulary(model: object, task: Task, given: GivenVocabulary | None) -> Vocabulary | None:
    """A vocabulary for the task; None if the model's is the task's own, or says itself what it is."""
    if given is None:
        prefix = getattr(model, "prefix", ())
        return task_vocabulary(task, prefix) if prefix else None
    return given if isinstance(given, Vocabulary) else given(task)


def _check_ids(cfg: Any, task: Task, vocabulary: Vocabulary) -> None:
    """Raises where a vocabulary has ids, logits or positions that a model of a config has not."""
    used = {
        "id": (int(vocabulary.tokens(task.held_out).max()), cfg.d_vocab),
        "position": (max(vocabulary.positions), cfg.n_ctx),
    }
    if vocabulary.columns is not None:
        size = getattr(cfg, "d_vocab_out", -1)
        used["logit"] = int(vocabulary.columns.max()), size if size > 0 else cfg.d_vocab
    for what, (most, size) in used.items():
        if most >= size:
            raise RaspLensError(
                f"The vocabulary for {task.name!r} uses the {what} {most}; the model has {size}, counted from 0."
            )


def _check_fits(model: Any, task: Task) -> None:
    if isinstance(model, HookedModel):
        try:
            check_fits(model.cfg, task, "The learned model")
        except RaspLensError as error:
            raise RaspLensError(
                f"{error} If its weights are those of a compiled model, disguised or compressed, pass "
                "vocabulary=vocabulary_of(compiled)."
            ) from None
        return
    sizes = {"d_vocab": len(task.vocab), "d_vocab_out": task.n_logits}
    for name, size in sizes.items():
        if (found := getattr(model.cfg, name)) != size:
            raise RaspLensError(
                f"The learned model does not fit the task {task.name!r}: its {name} is {found}, the task's "
                f"{size}. If it has a vocabulary of its own, pass vocabulary=token_vocabulary(...)."
            )
    if model.cfg.n_ctx < task.n_ctx:
        raise RaspLensError(
            f"The learned model takes {model.cfg.n_ctx} tokens; inputs of {task.name!r} have {task.n_ctx}."
        )
