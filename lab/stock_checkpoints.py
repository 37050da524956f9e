"""Every program of the library as a stock GPT-2, held against the program on every input.

python -m lab.stock_checkpoints --write docs/howto/stock-checkpoint.md
"""

import argparse
import tempfile
from pathlib import Path

from lab.page import show, table
from rasplens.compile import compile_program, rasp
from rasplens.compile.rasp.programs.catalogue import CATALOGUE, Entry


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to write into")
    rows = [row(name, entry) for name, entry in CATALOGUE.items()]
    headings = ["program", "layers", "heads", "width", "parameters", "inputs", "answers", "equal"]
    show(table(headings, rows), parser.parse_args().write, "stock-checkpoints")


def row(name: str, entry: Entry) -> list[str]:
    """The checkpoint of a program: its size as transformers counts it, and on how many inputs it is right."""
    from transformers import AutoModelForCausalLM

    options = {**dict(entry.options), "causal": True}
    compiled = compile_program(rasp.causal(entry.build()), entry.vocab, entry.max_len, **options)
    with tempfile.TemporaryDirectory() as folder:
        found = compiled.to_huggingface(Path(folder) / name)
        model = AutoModelForCausalLM.from_pretrained(Path(folder) / name)
    config, n_parameters = model.config, sum(one.numel() for one in model.parameters())
    size = config.n_layer, config.n_head, config.n_embd, f"{n_parameters:,}"
    equal = f"{found.inputs:,}"
    return [f"`{name}`", *map(str, size), f"{found.total:,}", f"{found.answers:,}", equal]


if __name__ == "__main__":
    main()
