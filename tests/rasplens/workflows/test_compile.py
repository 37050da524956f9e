"""`rasplens compile`, in process."""

import json
import re

from rasplens.model import load


def test_compile_shows_the_anatomy(cli, own_program, folder):
    own = "mine.py:histogram", "--vocab", "a,b,c", "--max-len", "5"
    code, text, _ = cli("compile", *own, "--out", "h.safetensors")
    assert code == 0
    assert re.search(r"histogram +categorical +5 +4-8 +L0 neurons 0-8", text)
    assert load(folder / "h.safetensors").config.n_ctx == 6
    code, text, _ = cli("compile", *own, "--input", "b,a,b")
    assert "b,a,b -> 2,1,2" in text
    code, text, _ = cli("compile", "sort", "--json")
    values = json.loads(text)
    assert values["program"] == "successor"
    assert values["bos"] is True
    assert values["variables"][0]["variable"] == "tokens"
