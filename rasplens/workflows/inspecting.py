"""`rasplens inspect`: what a file or a folder holds, and which tasks it fits."""

import warnings
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from rasplens import terminal
from rasplens.compile.compiled import load_compiled
from rasplens.errors import RaspLensError
from rasplens.learned import load_compressed, load_learned
from rasplens.learned.compressor.compressed_model import is_compressed
from rasplens.learned.importers.checkpoint import infer_config
from rasplens.learned.importers.huggingface import is_huggingface, load_huggingface
from rasplens.learned.importers.state_dicts import our_names, read_state_dict
from rasplens.model import HookedModel, StorageError
from rasplens.sources import learned_model
from rasplens.tasks import TASKS, Task, get_task


def inspect_and_show(path: Path, tasks: list[Task], n_heads: int | None, json: bool) -> None:
    """Shows what a model's file holds.

    Args:
        path: The file or folder.
        tasks: Tasks to try it on, beside those that are known.
        n_heads: Heads per layer, where the file does not say.
        json: Whether to print JSON.

    Raises:
        RaspLensError: If it holds no model.
    """
    if not path.exists():
        raise RaspLensError(f"There is no file {path}.")
    kind, config, hooks = _found(path, n_heads)
    fits = [_fit(path, task, n_heads) for task in [*(get_task(name) for name in TASKS), *tasks]]
    if json:
        terminal.as_json({"path": str(path), "kind": kind, "config": config, "hook_points": hooks, "tasks": fits})
        return
    terminal.table(f"{path}: {kind}", ["", "value"], [[name, str(value)] for name, value in config.items()])
    rows: list[list[object]] = [[fit["task"], fit["right"] or terminal.NOTHING, fit["why"]] for fit in fits]
    terminal.table("Tasks", ["task", "answers right", "why not"], rows)
    if hooks:
        terminal.say(f"{len(hooks)} hook points, such as {', '.join(hooks[:3])}; all with --json.")


def _found(path: Path, n_heads: int | None) -> tuple[str, dict[str, Any], list[str]]:
    """What kind of model it is, its architecture, and its hook points."""
    if is_huggingface(path):
        bridge = load_huggingface(path)
        names = ("architecture", "n_layers", "n_heads", "d_model", "d_head", "d_mlp", "n_ctx", "d_vocab")
        config = {name: getattr(bridge.cfg, name, None) for name in names}
        config["parameters"] = sum(parameter.numel() for parameter in bridge.parameters())
        return "a language model in a folder of Hugging Face's", config, sorted(bridge.hook_dict)
    if path.is_dir():
        raise RaspLensError(f"{path} is a folder without config.json: it holds no model of Hugging Face's.")
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
    weights, _ = our_names(read_state_dict(path), n_heads, str(path))
    inferred = infer_config(weights, path)
    assert is_dataclass(inferred)
    values = {**asdict(inferred), "parameters": sum(array.size for array in weights.values())}
    return "a state dict of TransformerLens", values, []


def _fit(path: Path, task: Task, n_heads: int | None) -> dict[str, Any]:
    """How well a model does a task, or why it cannot be asked."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            right = learned_model(task, path, n_heads).accuracy(task)
    except RaspLensError as error:
        return {"task": task.name, "right": None, "why": str(error).removeprefix(f"{path} ")}
    return {"task": task.name, "right": right, "why": ""}
