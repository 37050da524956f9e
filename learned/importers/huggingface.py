"""Models in Hugging Face's folders: config, weights as safetensors, perhaps a tokenizer.

Nothing is downloaded, no code of a folder is run, and what a bridge computes is compared with the model itself.
"""

import io
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rasplens.errors import RaspLensError
from rasplens.learned.importers.huggingface_weights import complete_model
from rasplens.model.exports.bridge import PARITY, relative_difference

if TYPE_CHECKING:
    import torch
    from transformer_lens.model_bridge import TransformerBridge

TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")
"""Files of which a tokenizer has at least one."""

PROBE_LENGTHS = (1, 2, 7, 32, 512)
"""Tokens in the inputs on which logits are compared, as far as the model takes them. Windows of attention and
scaled positions show on long inputs only; logits of longer ones than the last need too much memory."""

PROBES = 2
"""Inputs of each length."""

CONTEXTS = "max_position_embeddings", "max_seq_len", "seq_length"
"""Names of the longest input's length in the configs of transformers."""

MOST_SAID = 200
"""The most letters that a message quotes of a library's reason."""

ADAPTER = "adapter_config.json"
"""The name of the config of an adapter of weights."""


def is_huggingface(path: str | Path) -> bool:
    """Whether a path is a folder with a model's config."""
    return (Path(path) / "config.json").is_file()


def load_huggingface(folder: str | Path, device: str = "cpu") -> "TransformerBridge":
    """The model of a folder as a `TransformerBridge`, which `compare` takes with a `token_vocabulary`.

    Tried on GPT-2, GPT-NeoX (Pythia) and Llama architectures, in single precision whatever the file has. Logits
    are compared with those that the model itself gave before the bridge was built around it.

    Args:
        folder: With `config.json` and weights as safetensors. Without a tokenizer, tokens are ids.
        device: Where it runs, and interventions on it: `cpu`, `cuda`, `mps` …; any that torch knows.

    Raises:
        RaspLensError: If there is no such model, its weights are not those that its config describes, it brings
            code of its own, TransformerLens has no bridge for it, or the bridge's logits come out different; or
            if there is no such device.
    """
    check_device(device)
    folder = Path(folder).absolute()  # a relative name could be that of a model on the hub
    config = _checked_config(folder)
    import torch
    from transformer_lens.model_bridge import TransformerBridge

    with _quiet(), torch.no_grad():
        with _refused(f"{folder} cannot be loaded as a language model"):
            model = complete_model(folder, config)
            probes = _probes(model.config)
            own = [model(ids).logits for ids in probes]
            tokenizer = _tokenizer(folder, model.config.vocab_size)
        if not all(logits.isfinite().all() for logits in own):
            raise RaspLensError(f"The logits of {folder} are not finite. Check its weights for NaN.")
        with _refused(f"TransformerLens has no bridge for the model of {folder}"):
            bridge = TransformerBridge.boot_transformers(
                str(folder), hf_model=model, tokenizer=tokenizer, trust_remote_code=False
            ).eval()
            bridged = [bridge(ids) for ids in probes]
    check_parity(str(folder), bridged, own)
    if device != "cpu":
        with redirect_stdout(io.StringIO()):  # TransformerLens prints a line a module
            bridge.to(device)
    return bridge


def check_device(name: str) -> None:
    """Checks that torch can compute on a device.

    Raises:
        RaspLensError: If there is none, or torch knows no such device.
    """
    import torch

    try:
        torch.zeros(1, device=name).sum().item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # which one depends on the device
        reason = str(error).splitlines()[0][:MOST_SAID]
        raise RaspLensError(f'There is no device {name!r} here ({reason}). device="cpu" always works.') from None


def check_parity(what: str, bridged: "Sequence[torch.Tensor]", own: "Sequence[torch.Tensor]") -> None:
    """Raises where a bridge's logits are not the model's.

    Args:
        what: The model, for messages.
        bridged: The bridge's logits, by input.
        own: The model's.

    Raises:
        RaspLensError: If they differ by more than rounding.
    """
    pairs = zip(bridged, own, strict=True)
    differences = [relative_difference(its.numpy(), wanted.numpy()) for its, wanted in pairs]
    difference = float(np.max(differences))  # NaN if one is: Python's max would pass it over
    if not difference <= PARITY:
        raise RaspLensError(
            f"The bridge of {what} gives other logits than the model: they differ by {difference:.1e} of their "
            f"spread; {PARITY} is allowed. TransformerLens ignores a setting in its config.json."
        )


def _probes(config: Any) -> "list[torch.Tensor]":
    """Random inputs of several lengths, up to the longest that the model takes or that we can afford."""
    import torch

    longest = min(PROBE_LENGTHS[-1], *(getattr(config, name, None) or PROBE_LENGTHS[-1] for name in CONTEXTS))
    rng = np.random.default_rng(0)
    lengths = sorted({min(length, longest) for length in PROBE_LENGTHS})
    return [torch.as_tensor(rng.integers(config.vocab_size, size=(PROBES, length))) for length in lengths]


def _checked_config(folder: Path) -> dict[str, Any]:
    """Return the config of a folder.

    Raises:
        RaspLensError: If the folder holds no model, or one that only code of its own could load.
    """
    if not folder.is_dir():
        raise RaspLensError(f"There is no folder {folder}.")
    if not is_huggingface(folder):
        raise RaspLensError(f"{folder} has no config.json: it is not a Hugging Face folder.")
    config = _json_object(folder / "config.json")
    if "model_type" not in config:
        raise RaspLensError(f"{folder / 'config.json'} does not say its model_type.")
    if not any(path.is_file() for path in folder.glob("*.safetensors")):
        raise RaspLensError(f"{folder} has no weights as safetensors. Save them with safe_serialization=True.")
    if (folder / ADAPTER).exists():
        raise RaspLensError(f"{folder} holds an adapter ({ADAPTER}). Merge it into its model, and save that.")
    for name in ("config.json", "tokenizer_config.json"):
        path = folder / name
        if path.is_file() and "auto_map" in _json_object(path):
            raise RaspLensError(
                f"{path} names custom code (auto_map). RASPLens never runs code from a folder. If a class of "
                "transformers computes the same, remove auto_map."
            )
    return config


def _json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise RaspLensError(f"{path} is not valid JSON, or is nested too deeply.") from None
    if not isinstance(found, dict):
        raise RaspLensError(f"{path} must hold a JSON object; got {type(found).__name__}.")
    return found


def _tokenizer(folder: Path, n_tokens: int) -> Any:
    """The tokenizer of a folder; without one, words are ids."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if any((folder / name).is_file() for name in TOKENIZERS):
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    words = Tokenizer(WordLevel({str(i): i for i in range(n_tokens)}, unk_token="0"))
    words.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="0", eos_token="0")


@contextmanager
def _refused(what: str) -> Iterator[None]:
    """Turns any exception of a library into a RaspLensError of one line."""
    try:
        yield
    except RaspLensError as error:
        raise RaspLensError(f"{what}: {error}") from None
    except Exception as error:  # libraries document no list of their exceptions
        reason = " ".join(str(error).split())[:MOST_SAID]
        raise RaspLensError(f"{what} ({type(error).__name__}{': ' if reason else ''}{reason}).") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the progress bars and the advice of the libraries."""
    from transformers.utils import logging as of_transformers

    level = of_transformers.get_verbosity()
    of_transformers.set_verbosity_error()
    of_transformers.disable_progress_bar()
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
        of_transformers.set_verbosity(level)
        of_transformers.enable_progress_bar()
