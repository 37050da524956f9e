"""Models in Hugging Face's folders: config, weights as safetensors, perhaps a tokenizer. Nothing is downloaded."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rasplens.errors import RaspLensError

if TYPE_CHECKING:
    from transformer_lens.model_bridge import TransformerBridge

PARITY = 1e-4
"""The most that logits of the bridge may differ from the model's own, relative to the largest."""

TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")
"""Files of which a tokenizer has at least one."""


def is_huggingface(path: str | Path) -> bool:
    """Whether a path is a folder with a model's config."""
    return (Path(path) / "config.json").is_file()


def load_huggingface(folder: str | Path) -> "TransformerBridge":
    """The model of a folder as a `TransformerBridge`, which `compare` takes with a `token_vocabulary`.

    Tried on GPT-2, GPT-NeoX (Pythia) and Llama architectures, in single precision whatever the file has. Logits
    are compared with those of the model itself.

    Args:
        folder: With `config.json` and weights as safetensors. Without a tokenizer, tokens are ids.

    Raises:
        RaspLensError: If there is no such model, TransformerLens has no bridge for it, or its logits come out
            different.
    """
    folder = Path(folder)
    _check_folder(folder)
    import torch
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import AutoModelForCausalLM

    with _quiet():
        try:
            model = AutoModelForCausalLM.from_pretrained(
                folder, attn_implementation="eager", local_files_only=True, use_safetensors=True, dtype="float32"
            ).eval()
            bridge = TransformerBridge.boot_transformers(
                str(folder), hf_model=model, tokenizer=_tokenizer(folder, model.config.vocab_size)
            )
        except Exception as error:  # of whatever library: which ones there are nobody says
            first = str(error).strip().split("\n")[0]
            raise RaspLensError(f"{folder} cannot be loaded as a language model: {first}") from error
        n_ctx = min(8, getattr(model.config, "max_position_embeddings", 8))
        ids = torch.as_tensor(np.random.default_rng(0).integers(model.config.vocab_size, size=(2, n_ctx)))
        with torch.no_grad():
            own, bridged = model(ids).logits, bridge(ids)
    if not own.isfinite().all():
        raise RaspLensError(f"The logits of {folder} are not finite: its weights, perhaps, are NaN.")
    difference = float((own - bridged).abs().max() / own.abs().max().clamp_min(1.0))
    if not difference <= PARITY:
        raise RaspLensError(
            f"The bridge of {folder} gives other logits than the model: they differ by {difference:.1e} of the "
            f"largest; {PARITY} is allowed."
        )
    return bridge.eval()


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise RaspLensError(f"There is no folder {folder}.")
    if not is_huggingface(folder):
        raise RaspLensError(f"{folder} has no config.json: it is no folder of Hugging Face's.")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise RaspLensError(f"{folder / 'config.json'} holds no JSON.") from None
    if not isinstance(config, dict) or "model_type" not in config:
        raise RaspLensError(f"{folder / 'config.json'} does not say its model_type.")
    if not list(folder.glob("*.safetensors")):
        raise RaspLensError(f"{folder} has no weights as safetensors. Save them with safe_serialization=True.")


def _tokenizer(folder: Path, n_tokens: int) -> Any:
    """The tokenizer of a folder; without one, words are ids."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if any((folder / name).is_file() for name in TOKENIZERS):
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    words = Tokenizer(WordLevel({str(i): i for i in range(n_tokens)}, unk_token="0"))
    words.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="0", eos_token="0")


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
