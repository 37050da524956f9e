"""Programs that write their answer token by token, as stock GPT-2s: every question there is, up to three digits.

python -m lab.generation --write docs/howto/stock-checkpoint.md

Every answer is asked for behind the right ones (teacher forcing). Where all of them are right, so is every answer
that the model writes by itself, for it then reads what it would have been given. `generate` of transformers is
held against that on some.
"""

import argparse
import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lab.page import show, table
from rasplens.compile import compile_program, programs
from rasplens.compile.rasp import SOp, Value

BATCH = 5_000

GENERATED = 200
"""So many answers are written by `generate`."""


@dataclass(frozen=True)
class Written:
    """A program that writes, with all its questions and their answers.

    Attributes:
        name: Its name.
        program: The program.
        vocab: Its tokens.
        texts: Batches of questions with their right answers behind them, as ids: `[text, token]`.
        n_answers: How many tokens an answer has.
    """

    name: str
    program: SOp
    vocab: Sequence[Value]
    texts: Iterator[np.ndarray]
    n_answers: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to write into")
    rows = [row(one) for one in (incremented(8), of_parity(12), multiplied(3), closed(8), added(2), added(3))]
    headings = ["program", "layers", "heads", "width", "parameters", "questions", "right", "by `generate`"]
    show(table(headings, rows), parser.parse_args().write, "generation")


def incremented(n_bits: int) -> Written:
    """All binary numbers, plus one."""
    numbers = np.arange(2**n_bits)
    question = digits(numbers, n_bits, 2)[:, ::-1]
    texts = np.concatenate([question, np.full((len(numbers), 1), 2), digits(numbers + 1, n_bits + 1, 2)], axis=1)
    vocab = [0, 1, "="]
    return Written(f"increment({n_bits})", programs.arithmetic.increment(n_bits), vocab, iter([texts]), n_bits + 1)


def of_parity(n_bits: int) -> Written:
    """All sequences of bits, with the parity so far behind each."""
    bits = digits(np.arange(2**n_bits), n_bits, 2)
    texts = np.concatenate([bits, np.full((len(bits), 1), 2), bits.cumsum(axis=1) % 2], axis=1)
    return Written(f"parity({n_bits})", programs.arithmetic.parity(n_bits), [0, 1, "="], iter([texts]), n_bits)


def multiplied(n_digits: int) -> Written:
    """All products with one digit."""
    first, second = np.array(list(itertools.product(range(10**n_digits), range(10)))).T
    signs = [np.full((len(first), 1), sign) for sign in (10, 11)]
    question = [digits(first, n_digits)[:, ::-1], signs[0], second[:, None], signs[1]]
    texts = np.concatenate([*question, digits(first * second, n_digits + 1)], axis=1)
    program, vocab = programs.arithmetic.multiplication(n_digits), [*range(10), "*", "="]
    return Written(f"multiplication({n_digits})", program, vocab, iter([texts]), n_digits + 1)


def added(n_digits: int) -> Written:
    """All sums of two numbers."""
    pairs = itertools.product(range(10**n_digits), repeat=2)

    def batches() -> Iterator[np.ndarray]:
        while some := list(itertools.islice(pairs, BATCH)):
            first, second = np.array(some).T
            parts = [digits(first, n_digits)[:, ::-1], np.full((len(some), 1), 10)]
            parts += [digits(second, n_digits)[:, ::-1], np.full((len(some), 1), 11)]
            yield np.concatenate([*parts, digits(first + second, n_digits + 1)], axis=1)

    name, vocab = f"addition({n_digits})", [*range(10), "+", "="]
    return Written(name, programs.arithmetic.addition(n_digits), vocab, batches(), n_digits + 1)


def closed(n: int) -> Written:
    """All texts of `n` brackets of two kinds that can be closed, with what closes them, and ends up to `n + 1`."""
    pairs = {"(": ")", "[": "]"}
    vocab = [*"()[]", "."]
    texts = []
    for brackets in itertools.product(vocab[:-1], repeat=n):
        if (still_open := _opened(brackets, pairs)) is not None:
            closing = [pairs[one] for one in reversed(still_open)]
            texts.append([*brackets, *closing, *"." * (n + 1 - len(closing))])
    ids = np.array([[vocab.index(token) for token in text] for text in texts])
    program = programs.brackets.closing([opening + closing for opening, closing in pairs.items()])
    return Written(f"closing(2 kinds), {n} brackets", program, vocab, iter([ids]), n + 1)


def _opened(text: Sequence[str], pairs: Mapping[str, str]) -> list[str] | None:
    """The brackets that a text leaves open, by a stack; None if it closes another one."""
    stack: list[str] = []
    for token in text:
        if token in pairs:
            stack.append(token)
        elif not stack or pairs[stack.pop()] != token:
            return None
    return stack


def digits(numbers: np.ndarray, n: int, base: int = 10) -> np.ndarray:
    """The digits of numbers, the ones first: `[number, digit]`."""
    return numbers[:, None] // base ** np.arange(n) % base


def row(one: Written) -> list[str]:
    """The stock checkpoint of a program, held against every right answer."""
    from transformers import AutoModelForCausalLM

    first = next(one.texts)
    n_read = first.shape[1] - 1  # the last token is written, and not read
    compiled = compile_program(one.program, one.vocab, n_read, causal=True)
    with tempfile.TemporaryDirectory() as folder:
        compiled.to_huggingface(Path(folder) / "it")
        model = AutoModelForCausalLM.from_pretrained(Path(folder) / "it").eval()
    asked = right = 0
    for texts in itertools.chain([first], one.texts):
        read = torch.as_tensor(compiled.with_bos(texts[:, :n_read]))
        with torch.no_grad():
            given = model(read).logits[:, -one.n_answers :].argmax(-1).numpy()
        asked, right = asked + len(texts), right + int((given == texts[:, -one.n_answers :]).all(axis=1).sum())
    by_itself = generated(model, compiled.with_bos(first[:GENERATED, : -one.n_answers]), one.n_answers)
    same = int((by_itself == first[:GENERATED, -one.n_answers :]).all(axis=1).sum())
    config, n_parameters = model.config, sum(each.numel() for each in model.parameters())
    size = config.n_layer, config.n_head, config.n_embd, f"{n_parameters:,}"
    return [f"`{one.name}`", *map(str, size), f"{asked:,}", f"{right:,}", f"{same} of {len(by_itself)}"]


def generated(model: Any, questions: np.ndarray, n: int) -> np.ndarray:
    """What a model writes behind questions, the likeliest token at a time."""
    ids = torch.as_tensor(questions)
    found = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=n, do_sample=False, pad_token_id=0
    )
    return np.asarray(found[:, -n:])


if __name__ == "__main__":
    main()
