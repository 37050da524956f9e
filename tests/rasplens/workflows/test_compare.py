"""`rasplens compare`, in process, on the smallest task with the quick config."""

import json
import re

from rasplens.learned import load_pretrained

QUICK = ("--config", "quick", "--inputs", "50")


def test_every_program_of_the_task_is_ranked(cli, folder):
    code, text, _ = cli("compare", "copy", *QUICK, "--out", "reports")
    assert code == 0
    row = r"^shipped: (offset|induction) +(implements|partly|does not|cannot tell)"
    assert len(re.findall(row, text, flags=re.M)) == 2
    assert re.search(r"^shipped → (offset|induction|none of these|partly|cannot tell)", text, flags=re.M)
    names = sorted(path.name for path in (folder / "reports").iterdir())
    assert names == ["shipped_induction.html", "shipped_offset.html"]


def test_equal_models_have_equal_rows(cli, folder):
    for name in ("a", "b"):
        load_pretrained("copy").save(folder / f"{name}.safetensors")
    models = ("--learned", "a.safetensors", "--learned", "b.safetensors")
    code, text, _ = cli("compare", "copy", *models, "--program", "offset", *QUICK, "--json")
    assert code == 0
    first, second = json.loads(text)
    assert (first.pop("model"), second.pop("model")) == ("a.safetensors", "b.safetensors")
    assert first == second
