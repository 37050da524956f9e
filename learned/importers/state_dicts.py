"""State dicts of other libraries under our names: every naming that TransformerLens has had.

- Since 2022: ours, `embed.W_E [d_vocab, d_model]`, `blocks.0.attn.W_Q [head, d_model, d_head]`, …
- Before that, as EasyTransformer: the same names, every matrix transposed.
- Since version 3, of a bridge: `embed.weight`, `blocks.0.attn.q.weight [head × d_head, d_model]`, …, where every
  component may stand under `_original_component`; it does not say how many heads there are.

A wrapper's prefix (`module.`, `_orig_mod.`, `model.`) is dropped.
"""

import re
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rasplens.errors import RaspLensError
from rasplens.model import StorageError
from rasplens.model.forward import ROTARY_BASE, rotary_angles
from rasplens.model.storage import check_size

Weights = dict[str, np.ndarray]

EMBEDDINGS = "embed.W_E", "embed.weight"
"""Names of the token embedding: models have it, and other mappings of tensors have not."""

MOST_UNPACKED = 100
"""A file that unpacks to more than so many times its size is not read."""

_PREFIX = re.compile(r"^(module\.|_orig_mod\.|model\.)+")
_BUFFER = re.compile(r"blocks\.\d+\.attn\.(mask|IGNORE|rotary_sin|rotary_cos)$")
_QUERIES_OR_KEYS = re.compile(r"attn\.[Wb]_[QK]$")
_BRIDGE_NAMES = {
    "embed.weight": "embed.W_E",
    "pos_embed.weight": "pos_embed.W_pos",
    "unembed.weight": "unembed.W_U",
    "unembed.bias": "unembed.b_U",
    "ln_final.weight": "ln_final.w",
    "ln_final.bias": "ln_final.b",
}


def read_state_dict(path: Path) -> Weights:
    """The tensors of a `torch.save`d state dict, or of a dictionary that holds one; no code in it runs.

    Warns:
        UserWarning: If it is of torch's format before 1.6, which has no checksums.

    Raises:
        StorageError: If it is no such file, is damaged, or holds several state dicts.
    """
    import torch

    check_size(path)
    try:
        _check_archive(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        said = str(error).partition("\n")[0].partition(". ")[0]
        reason = f" ({said})" if " " in said else ""  # torch may say no more than a byte that it did not expect
        raise StorageError(
            f"{path} is neither a RASPLens model nor a state dict that torch can load safely{reason}. Give a "
            "RASPLens .safetensors, a state dict that torch.save wrote, or a Hugging Face folder."
        ) from None
    if not zipfile.is_zipfile(path):
        warnings.warn(
            f"{path} has torch's format before 1.6, which has no checksums: damage to it cannot be detected.",
            stacklevel=2,
        )
    return _without_prefixes(path, _state_dict(path, content))


def _state_dict(path: Path, content: Any) -> Mapping[str, Any]:
    """The only state dict of a file: what it holds, or what stands there under a name.

    Raises:
        StorageError: If there is none, or there are several.
    """
    if _is_state_dict(content):
        return content
    named = content if isinstance(content, Mapping) else {}
    found = {name: state for name, state in named.items() if _is_state_dict(state)}
    models = {name: state for name, state in found.items() if any(key.endswith(EMBEDDINGS) for key in state)}
    found = models or found
    if not found:
        raise StorageError(f"{path} holds no state dict (a mapping from names to tensors).")
    if len(found) > 1:
        first, *_ = found
        raise StorageError(
            f"{path} holds several state dicts: {', '.join(map(repr, found))}. Save one of them alone, such as "
            f"torch.save(torch.load({path.name!r})[{first!r}], 'one.pt')."
        )
    return found.popitem()[1]


def _without_prefixes(path: Path, state: Mapping[str, Any]) -> Weights:
    """The arrays of a state dict by their names without a wrapper's prefix."""
    found: Weights = {}
    for name, tensor in state.items():
        if (short := _PREFIX.sub("", name)) in found:
            raise StorageError(f"{path} holds {short!r} twice, under different prefixes. Save one model alone.")
        found[short] = _array(path, name, tensor)
    return found


def _is_state_dict(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and all(_is_entry(item) for item in value.items())


def _check_archive(path: Path) -> None:
    """Raises where a file's checksums do not match, or it would unpack to far more than it is.

    torch checks neither, and stores tensors as they are.
    """
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            if file.read(2) == b"PK":
                raise RaspLensError("it is damaged: its archive has no end")
        return
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > MOST_UNPACKED * path.stat().st_size:
            raise RaspLensError(f"it would unpack to {unpacked:,} bytes")
        if (damaged := archive.testzip()) is not None:
            raise RaspLensError(f"it is damaged: the checksum of its {damaged!r} does not match")


def _is_entry(item: tuple[Any, Any]) -> bool:
    import torch

    return isinstance(item[0], str) and isinstance(item[1], torch.Tensor)


def _array(path: Path, name: str, tensor: Any) -> np.ndarray:
    """A tensor that holds its numbers, as an array.

    Raises:
        StorageError: If it holds none, or claims more of them than there are bytes in the file.
    """
    import torch

    if tensor.is_meta or tensor.is_quantized or tensor.is_complex():
        kind = "no numbers" if tensor.is_meta else f"numbers of dtype {tensor.dtype}"
        raise StorageError(f"{path} cannot be read: its {name} holds {kind}. Save its float() on the CPU.")
    if tensor.numel() > path.stat().st_size:
        raise StorageError(
            f"{path} cannot be read: its {name} claims {tensor.numel():,} numbers, more than the file has bytes."
        )
    dense = (tensor.to_dense() if tensor.layout != torch.strided else tensor).detach()
    return dense.to(torch.float32).numpy() if dense.dtype in (torch.bfloat16, torch.float16) else dense.numpy()


@dataclass(frozen=True, eq=False)
class StateDict:
    """A state dict under our names.

    Attributes:
        weights: The weights, by our names and in our axis order.
        mask: The attention mask that was stored beside them, `[n_ctx, n_ctx]`; None without one.
        rotary_sin: The sines of rotary positions that were stored beside them, `[n_ctx, rotary_dim]`, or None.
    """

    weights: Weights
    mask: np.ndarray | None
    rotary_sin: np.ndarray | None

    @property
    def n_ctx(self) -> int | None:
        """The longest sequence, as far as the shapes say."""
        rows = (self.weights.get("pos_embed.W_pos"), self.rotary_sin, self.mask)
        return next((len(array) for array in rows if array is not None), None)


def our_names(state: Weights, n_heads: int | None, what: str) -> StateDict:
    """The weights under our names and axis order, and what was stored beside them.

    Args:
        state: Arrays by name.
        n_heads: Heads per layer, for namings that do not say.
        what: What the state dict is, for messages.

    Raises:
        RaspLensError: If the number of heads is needed and not given, or does not fit; or rotary positions have
            other wavelengths than ours.
    """
    buffers = {
        kind: next((array for name, array in state.items() if name.endswith(f"attn.{kind}")), None)
        for kind in ("mask", "rotary_sin")
    }
    weights = {name: array for name, array in state.items() if not _BUFFER.search(name)}
    weights = {name.replace("._original_component", ""): array for name, array in weights.items()}
    if "embed.weight" in weights:
        weights = _from_bridge(weights, n_heads, what)
    elif _is_transposed(weights):
        weights = {name: np.swapaxes(a, -1, -2) if ".W_" in name else a for name, a in weights.items()}
    if buffers["rotary_sin"] is not None:
        weights = _with_halves_paired(weights, buffers["rotary_sin"], what)
    return StateDict(weights, **buffers)


def _with_halves_paired(weights: Weights, sines: np.ndarray, what: str) -> Weights:
    """Queries and keys with their dimensions in an order in which rotary positions pair the two halves.

    Adjacent dimensions are paired in some models of TransformerLens (GPT-J's way).
    """
    n_ctx, width = sines.shape
    expected = np.sin(rotary_angles(n_ctx, width))
    if np.allclose(sines, np.concatenate([expected, expected], axis=1), atol=1e-3):
        return weights
    if not np.allclose(sines, np.repeat(expected, 2, axis=1), atol=1e-3):
        raise RaspLensError(f"{what} has rotary positions whose wavelengths are not powers of {ROTARY_BASE:,}.")

    def in_order(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array[..., 0:width:2], array[..., 1:width:2], array[..., width:]], axis=-1)

    return {name: in_order(a) if _QUERIES_OR_KEYS.search(name) else a for name, a in weights.items()}


def _is_transposed(weights: Weights) -> bool:
    """Whether matrices have their axes in the order of 2022: embeddings then share their first axis."""
    token, position = weights.get("embed.W_E"), weights.get("pos_embed.W_pos")
    if token is None or position is None or token.ndim != 2 or position.ndim != 2:
        return False
    return token.shape[0] == position.shape[0] and token.shape[1] != position.shape[1]


def _from_bridge(weights: Weights, n_heads: int | None, what: str) -> Weights:
    if n_heads is None:
        raise RaspLensError(f"The shapes of {what} do not say how many heads a layer has. Give n_heads.")
    found: Weights = {}
    for name, array in weights.items():
        found |= _bridge_entry(name, array, n_heads, what)
    return found


def _bridge_entry(name: str, array: np.ndarray, n_heads: int, what: str) -> Weights:
    if name in _BRIDGE_NAMES:
        return {_BRIDGE_NAMES[name]: array.T if name == "unembed.weight" else array}
    if match := re.fullmatch(r"(blocks\.\d+\.)(ln1|ln2|attn|mlp)\.(?:(\w+)\.)?(weight|bias)", name):
        block, part, component, kind = match.groups()
        is_weight = kind == "weight"
        if part in ("ln1", "ln2"):
            return {f"{block}{part}.{'w' if is_weight else 'b'}": array}
        if part == "mlp":
            side = str(component).removeprefix("fc_")
            return {f"{block}mlp.{'W' if is_weight else 'b'}_{side}": array.T if is_weight else array}
        letter = str(component).upper()
        if letter == "O" and not is_weight:
            return {f"{block}attn.b_O": array}
        return {f"{block}attn.{'W' if is_weight else 'b'}_{letter}": _by_head(array, letter, n_heads, what)}
    return {name: array}


def _by_head(array: np.ndarray, letter: str, n_heads: int, what: str) -> np.ndarray:
    """A projection of all heads side by side, head by head."""
    side = array.shape[1] if letter == "O" else array.shape[0]
    if side % n_heads:
        raise RaspLensError(f"{what} cannot have {n_heads} heads: its W_{letter} is {side} wide.")
    if array.ndim == 1:
        return array.reshape(n_heads, -1)
    if letter == "O":
        return array.T.reshape(n_heads, side // n_heads, -1)
    return np.swapaxes(array.reshape(n_heads, side // n_heads, -1), 1, 2)
