"""`rasplens inspect`: what a file or a folder holds, and which tasks it fits."""

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rasplens import terminal
from rasplens.compile.compiled import load_compiled
from rasplens.errors import RaspLensError
from rasplens.learned import load_compressed, load_learned
from rasplens.learned.compressor.compressed_model import is_compressed
from rasplens.learned.importers.huggingface import is_huggingface, load_huggingface
from rasplens.learned.importers.readings import Declared, readings
from rasplens.learned.importers.state_dicts import our_names, read_state_dict
from rasplens.model import HookedModel, StorageError, hook_names
from rasplens.sources import learned_model
from rasplens.tasks import TASKS, Task, get_task


def inspect_and_show(path: Path, tasks: list[Task], declared: Declared, json: bool) -> None:
    """Shows what a model's file holds.

    Args:
        path: The file or folder.
        tasks: Tasks to try it on, beside those that are known.
        declared: What is said of a state dict, whose shapes do not tell everything.
        json: Whether to print JSON.

    Raises:
        RaspLensError: If it holds no model.
    """
    if not path.exists():
        raise RaspLensError(f"There is no file {path}.")
    kind, config, hooks = _found(path, declared)
    fits = [_fit(path, task, declared) for task in [*(get_task(name) for name in TASKS), *tasks]]
    if json:
        terminal.as_json({"path": str(path), "kind": kind, "config": config, "hook_points": hooks, "tasks": fits})
        return
    terminal.table(f"{path}: {kind}", ["", "value"], [[name, _shown(value)] for name, value in config.items()])
    rows: list[list[object]] = []
    for fit in fits:
        shares = [terminal.NOTHING if fit[key] is None else fit[key] for key in ("right", "generated")]
        rows.append([fit["task"], *shares, fit["why"]])
    terminal.table("Tasks", ["task", "answers\nright", "reading\nits own", "why not"], rows)
    if hooks:
        terminal.say(f"{len(hooks)} hook points, such as {', '.join(hooks[:3])}; all with --json.")


def _found(path: Path, declared: Declared) -> tuple[str, dict[str, Any], list[str]]:
    """Return the kind of model, its architecture, and its hook points."""
    if is_huggingface(path):
        bridge = load_huggingface(path)
        names = ("architecture", "n_layers", "n_heads", "d_model", "d_head", "d_mlp", "n_ctx", "d_vocab")
        config = {name: getattr(bridge.cfg, name, None) for name in names}
        config["parameters"] = sum(parameter.numel() for parameter in bridge.parameters())
        return "a Hugging Face language model", config, sorted(bridge.hook_dict)
    if path.is_dir():
        raise RaspLensError(f"{path} is a folder without config.json: it holds no Hugging Face model.")
    for kind, load in (
        ("a compressed program", lambda: load_compressed(path).transformer if is_compressed(path) else None),
        ("a compiled program", lambda: load_compiled(path).transformer),
        ("a trained model", lambda: load_learned(path).transformer),
    ):
        try:
            transformer = load()
        except StorageError:
            continue
        if transformer is not None:
            values = {**asdict(transformer.config), "parameters": transformer.n_params}
            return f"{kind}, in RASPLens's format", values, list(HookedModel(transformer).hook_dict)
    state = our_names(read_state_dict(path), declared.n_heads, str(path))
    first, *others = readings(state, declared, None, str(path))
    values = {**asdict(first), "parameters": sum(array.size for array in state.weights.values())}
    for name in Declared.__dataclass_fields__:
        possible = dict.fromkeys(_shown(getattr(reading, name)) for reading in (first, *others))
        values[name] = " or ".join(possible) if len(possible) > 1 else values[name]
    return "a state dict of TransformerLens", values, hook_names(first)


def _shown(value: Any) -> str:
    """A value of a config in a word."""
    return f"{value:.4g}" if isinstance(value, float) else "standard" if value == "learned" else str(value)


def _fit(path: Path, task: Task, declared: Declared) -> dict[str, Any]:
    """How well a model does a task, reading the right answers or its own, or why it cannot be asked."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            studied = learned_model(task, path, declared)
            right, generated = studied.accuracy(task), studied.generated(task)
    except RaspLensError as error:
        why = str(error).removeprefix(f"{path} ")
        return {"task": task.name, "right": None, "generated": None, "why": why}
    return {"task": task.name, "right": right, "generated": generated, "why": ""}
