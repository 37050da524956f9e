"""A compiled program as an ordinary checkpoint: a GPT-2 or a Llama that any tool loads, and its truth."""

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from rasplens.compile.anatomy import Anatomy
from rasplens.compile.ground_truth_circuit import circuit
from rasplens.compile.limits import DEFAULT_LIMITS
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.program_text import program_text
from rasplens.compile.rasp.values import value_key
from rasplens.errors import RaspLensError
from rasplens.model.constant_norm import Readout
from rasplens.model.exports.gpt2 import gpt2_weights
from rasplens.model.exports.llama import llama_weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Family = Literal["gpt2", "llama"]
"""The families of stock models that a program can become."""

ENUMERATED: Final = 20_000
"""Of so many inputs all are checked, of more some at random."""

SAMPLED: Final = 2_000

NEVER: Final = 1000.0
"""How far the logits of tokens that are no answers are below."""

UNKNOWN: Final = "<unk>"
"""The last token, for words that are none: tools try a tokenizer on words of their own."""

TRUTH: Final = "truth.json"
"""The name of the file of what each part is."""


@dataclass(frozen=True)
class Checked:
    """How a checkpoint was checked.

    Attributes:
        inputs: On how many inputs its answers are the program's.
        total: Of how many.
        undefined: On how many of these the program itself is undefined at some position, so that none is compared.
        answers: How many answers were compared.
    """

    inputs: int
    total: int
    undefined: int
    answers: int

    def __str__(self) -> str:
        extent = f"all {self.total:,}" if self.inputs == self.total else f"{self.inputs:,} of {self.total:.2g}"
        outside = f", undefined at some position of {self.undefined:,} of them" if self.undefined else ""
        return f"equal on {extent} inputs{outside}, {self.answers:,} answers"


def save_stock_checkpoint(compiled: Anatomy, folder: str | Path, family: Family = "gpt2") -> Checked:
    """Writes a stock model with a program's answers, a tokenizer, and `truth.json`; nothing if an answer differs.

    Args:
        compiled: The program, compiled with `causal=True`.
        folder: A new or empty folder.
        family: Of the model: `"gpt2"` or `"llama"`. A Llama counts positions from a BOS.

    Raises:
        RaspLensError: If the family cannot express it, its answers differ in single precision, or something is
            there.
    """
    folder = Path(folder)
    if family not in get_args(Family):
        raise RaspLensError(f"The family must be one of {', '.join(get_args(Family))}; got {family!r}.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RaspLensError(f"{folder} already exists, and is not an empty folder. Give another one.")
    if not folder.absolute().parent.is_dir():
        raise RaspLensError(f"There is no folder {folder.absolute().parent} to make {folder.name} in.")
    tokens, answers = _tokens(compiled)
    readout = _readout(compiled, len(tokens), answers)
    inputs = list(checked_inputs(compiled, ENUMERATED, SAMPLED))
    longest, in_front = longest_stream(compiled, inputs), 0
    if family == "gpt2":
        fields, weights = gpt2_weights(compiled.transformer, readout, longest)
    else:
        bos = len(compiled.inputs.vocab) if compiled.has_bos else None
        fields, weights, in_front = llama_weights(compiled.transformer, readout, longest, bos)
    model = _model(family, fields, weights, compiled)
    checked = _check(compiled, model, inputs, answers)
    with tempfile.TemporaryDirectory(dir=folder.absolute().parent) as made:
        _write(model, weights, Path(made))
        _tokenizer(compiled, tokens).save_pretrained(made)
        (Path(made) / TRUTH).write_text(
            json.dumps(_truth(compiled, tokens, answers, in_front), indent=1), encoding="utf-8"
        )
        folder.mkdir(exist_ok=True)
        for path in Path(made).iterdir():
            shutil.move(path, folder / path.name)
    return checked


def _tokens(compiled: Anatomy) -> tuple[list[str], list[int]]:
    """The name of each token, and the token of each answer: one of the program's own, or one behind these."""
    values: list[Value] = list(compiled.inputs.vocab)
    known = {value_key(value): i for i, value in enumerate(values)}
    names = [str(value) for value in values]
    names += ["<bos>"] * compiled.has_bos + ["<pad>"] * compiled.has_pad
    answers = []
    for value in compiled.variables[compiled.output].values:
        if value_key(value) not in known:
            known[value_key(value)] = len(names)
            names.append(str(value))
        answers.append(known[value_key(value)])
    names.append(UNKNOWN)
    are_words = len(set(names)) == len(names) and all(name.split() == [name] for name in names)
    return (names if are_words else [f"<{i}|{'_'.join(name.split())}>" for i, name in enumerate(names)]), answers


def _readout(compiled: Anatomy, n_tokens: int, answers: list[int]) -> Readout:
    """A logit for each token: an answer's own; of others, never."""
    own = answer_logits(compiled)
    weight, bias = np.zeros((len(own.weight), n_tokens)), np.full(n_tokens, -NEVER)
    weight[:, answers], bias[answers] = own.weight, own.bias
    return Readout(weight, bias)


def answer_logits(compiled: Anatomy) -> Readout:
    """What reads a logit for each answer: its own, or of a number minus its squared distance."""
    model, output = compiled.transformer, compiled.variables[compiled.output]
    bias = np.asarray(model.weights.get("unembed.b_U", np.zeros(model.config.d_vocab_out)))
    if output.encoding is not Encoding.NUMERICAL:
        return Readout(model.W_U, bias)
    # Of all v, the one nearest to x has the largest 2vx - v².
    numbers = np.array([float(value) for value in output.values])
    return Readout(np.outer(model.W_U[:, 0], 2 * numbers), 2 * numbers * bias[0] - numbers**2)


def checked_inputs(compiled: Anatomy, all_of: int, some: int) -> Iterator[np.ndarray]:
    """Ids without a BOS: of every input, if there are at most so many; else of some at random."""
    space = compiled.inputs
    return space.all_ids() if space.size <= all_of else space.sampled_ids(some, seed=0)


def longest_stream(compiled: Anatomy, inputs: Sequence[np.ndarray]) -> float:
    """The largest length of a residual stream, with the direction that makes its mean zero."""
    largest = 0.0
    for ids in inputs[:: max(1, len(inputs) // 20)]:
        _, cache = compiled.transformer.run_with_cache(compiled.with_bos(ids[:100]))
        for name, stream in cache.items():
            if "hook_resid" in name:
                squares = (stream**2).sum(axis=-1) + stream.sum(axis=-1) ** 2
                largest = max(largest, float(squares.max()))
    return float(np.sqrt(largest))


def _model(
    family: Family, fields: dict[str, Any], weights: dict[str, np.ndarray], compiled: Anatomy
) -> "PreTrainedModel":
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    special: dict[str, Any] = {"eos_token_id": None}
    special["bos_token_id"] = len(compiled.inputs.vocab) if compiled.has_bos else None
    if family == "gpt2":
        model: PreTrainedModel = GPT2LMHeadModel(GPT2Config(**fields, **special))
    else:
        model = LlamaForCausalLM(LlamaConfig(**fields, **special))
    model.load_state_dict({name: torch.tensor(array) for name, array in weights.items()}, strict=True)
    model.train(False)
    return model


def _write(model: "PreTrainedModel", weights: dict[str, np.ndarray], folder: Path) -> None:
    """Config and weights as `save_pretrained` writes them, without its progress bars."""
    from safetensors.numpy import save

    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    (folder / "model.safetensors").write_bytes(save(weights, metadata={"format": "pt"}))


def _check(compiled: Anatomy, model: Any, inputs: list[np.ndarray], answers: list[int]) -> Checked:
    """Holds the answers against the compiled model's wherever the program has one."""
    import torch

    def answered(ids: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return model(torch.as_tensor(ids)).logits[:, compiled.offset :].argmax(-1).numpy()

    advice = "its weights are too far apart. Shorten the sequences, or reduce the vocabulary."
    name = {"gpt2": "In single precision GPT-2", "llama": "In single precision Llama"}[model.config.model_type]
    return held_against(compiled, inputs, np.array(answers), answered, name, advice)


def held_against(
    compiled: Anatomy,
    inputs: Sequence[np.ndarray],
    answers: np.ndarray,
    answered: Callable[[np.ndarray], np.ndarray],
    name: str,
    advice: str,
) -> Checked:
    """Holds a model's answers against a compiled one's, wherever the program has one.

    Args:
        compiled: The program.
        inputs: Ids of its vocabulary, without a BOS.
        answers: The model's token for each of the program's answers.
        answered: From ids of the program, with its BOS, the model's tokens at the positions of the sequence.
        name: Of the model, the first words of the error.
        advice: What may be wrong, for the error.

    Raises:
        RaspLensError: If one differs, or there is none.
    """
    n_inputs, n_undefined, n_answers = 0, 0, 0
    for every in inputs:
        ids = every[~compiled.is_undefined(every)]
        n_inputs, n_undefined = n_inputs + len(every), n_undefined + len(every) - len(ids)
        if not len(ids):
            continue
        codes = compiled.codes(ids)[compiled.output]
        differs = (codes >= 0) & (answered(compiled.with_bos(ids)) != answers[codes])
        if differs.any():
            row, place = np.argwhere(differs)[0].tolist()
            tokens = [compiled.inputs.vocab[i] for i in ids[row]]
            raise RaspLensError(
                f"{name} answers otherwise than {compiled.output!r}, on {tokens} at position {place}: {advice}"
            )
        n_answers += int((codes >= 0).sum())
    if not n_answers:
        raise RaspLensError(f"{compiled.output!r} has no value on any input, so nothing could be checked.")
    return Checked(n_inputs, compiled.inputs.size, n_undefined, n_answers)


def _tokenizer(compiled: Anatomy, names: list[str]) -> Any:
    """Words between spaces are tokens; a BOS comes first."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    found = Tokenizer(WordLevel({name: i for i, name in enumerate(names)}, unk_token=names[-1]))
    found.pre_tokenizer = WhitespaceSplit()
    special = {"unk_token": names[-1]}
    if compiled.has_bos:
        bos = len(compiled.inputs.vocab)
        found.post_processor = TemplateProcessing(single=f"{names[bos]} $A", special_tokens=[(names[bos], bos)])
        special["bos_token"] = names[bos]
    if compiled.has_pad:
        special["pad_token"] = names[compiled.transformer.config.d_vocab - 1]
    fast: Any = PreTrainedTokenizerFast
    return fast(tokenizer_object=found, **special)


def _truth(compiled: Anatomy, tokens: list[str], answers: list[int], in_front: int) -> dict[str, Any]:
    """What each part of the model is, in JSON values. Its first directions are those of the compiled model.

    Args:
        compiled: The program.
        tokens: The name of each token.
        answers: The token of each answer.
        in_front: How many layers the model has before the program's first.
    """
    output = compiled.variables[compiled.output]

    def shifted(part: str) -> str:
        return re.sub(r"^L(\d+)", lambda layer: f"L{int(layer[1]) + in_front}", part)

    found = {
        "program": program_text(compiled.program),
        "tokens": tokens,
        "answers": {tokens[i]: str(value) for i, value in zip(answers, output.values, strict=True)},
        "heads": {shifted(f"L{layer}H{head}"): name for (layer, head), name in compiled.heads.items()},
        "neurons": [
            {"layer": layer + in_front, "first": first, "end": end, "variable": name}
            for (layer, first, end), name in compiled.neurons.items()
        ],
        "variables": {
            name: {
                "values": [str(value) for value in variable.values],
                "written_at": re.sub(r"\d+", lambda layer: str(int(layer[0]) + in_front), variable.written_at),
                "read": {
                    str(i): variable.columns[i].tolist() for i in np.flatnonzero(variable.columns.any(axis=1))
                },
            }
            for name, variable in compiled.variables.items()
        },
        "edges": [
            [shifted(str(end)) for end in edge] for edge in circuit(compiled, "head", None, DEFAULT_LIMITS).edges
        ],
    }
    return found | ({"positions": "L0H0 and the neurons of layer 0"} if in_front else {})
