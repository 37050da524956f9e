"""Every program of the library as a stock GPT-2 and a stock Llama, held against the program on every input.

python -m lab.stock_checkpoints --write docs/howto/stock-checkpoint.md
"""

import argparse
import tempfile
from pathlib import Path

from lab.page import show, table
from rasplens.compile import compile_program, rasp
from rasplens.compile.rasp.programs.catalogue import CATALOGUE, Entry
from rasplens.compile.stock_checkpoint import Family

FAMILIES: dict[Family, str] = {"gpt2": "GPT-2", "llama": "Llama"}

OF_EACH = ["heads", "width", "parameters", "equal"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to write into")
    rows = [row(name, entry) for name, entry in CATALOGUE.items()]
    headings = [
        f"{name}: {OF_EACH[0]}" if i == 0 else one for name in FAMILIES.values() for i, one in enumerate(OF_EACH)
    ]
    show(table(["program", "inputs", *headings], rows), parser.parse_args().write, "stock-checkpoints")


def row(name: str, entry: Entry) -> list[str]:
    """The checkpoints of a program: their sizes as transformers counts them, and how often they are right."""
    cells: list[str] = []
    total = 0
    for family in FAMILIES:
        size, inputs, total = measured(name, entry, family)
        cells += [*size, f"{inputs:,}"]
    return [f"`{name}`", f"{total:,}", *cells]


def measured(name: str, entry: Entry, family: Family) -> tuple[list[str], int, int]:
    """The size of a checkpoint, on how many inputs it is right, and of how many."""
    from transformers import AutoModelForCausalLM

    options = {**dict(entry.options), "causal": True, "bos": True if family == "llama" else "auto"}
    compiled = compile_program(rasp.causal(entry.build()), entry.vocab, entry.max_len, **options)
    with tempfile.TemporaryDirectory() as folder:
        found = compiled.to_huggingface(Path(folder) / name, family)
        model = AutoModelForCausalLM.from_pretrained(Path(folder) / name)
    config, n_parameters = model.config, sum(one.numel() for one in model.parameters())
    names = "num_hidden_layers", "num_attention_heads", "hidden_size"
    return [*(str(getattr(config, each)) for each in names), f"{n_parameters:,}"], found.inputs, found.total


if __name__ == "__main__":
    main()
