import numpy as np
import pytest

from rasplens.learned.compressor.compressed_model import compressed_by
from rasplens.sources import Sizes, compile_source, learned_model, parse_vocab, reference
from rasplens.tasks import get_task


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a,b,c", ["a", "b", "c"]),
        ("0..3", [0, 1, 2, 3]),
        ("-1..1,x", [-1, 0, 1, "x"]),
        ("7,a..b,(,)", [7, "a..b", "(", ")"]),
    ],
)
def test_vocabularies_are_lists_and_ranges(text, tokens):
    assert parse_vocab(text) == tokens


def test_an_empty_range_is_refused():
    with pytest.raises(ValueError, match=r"The range 3\.\.0 of --vocab is empty; write 0\.\.3"):
        parse_vocab("3..0")


def test_the_first_program_is_the_reference():
    task = get_task("copy")
    assert reference(task, None).output == "offset"
    assert reference(task, "induction").output == "induction"


def test_without_a_path_the_shipped_model_is_taken():
    assert learned_model(get_task("sort"), None).task == "sort"


def test_a_compressed_program_is_a_model_to_compare(tmp_path):
    path, task = tmp_path / "offset.safetensors", get_task("copy")
    compiled = reference(task, None)
    compressed_by(compiled, np.eye(compiled.transformer.config.d_model)).save(path)
    model = learned_model(task, path)
    wide = compiled.transformer.config.d_model
    assert model.origin == f"'offset', compressed to {wide} of {wide} directions"


def test_programs_of_the_library_have_names_and_inputs_of_their_own():
    assert compile_source("reverse", None, Sizes(None, None, False)).inputs.max_len == 5
    other = compile_source("reverse", None, Sizes("x,y", 3, False), optimize=False)
    assert (other.inputs.vocab, other.inputs.max_len) == (("x", "y"), 3)
    seen = compile_source("shift_by", None, Sizes(None, None, True)).inputs.visible
    assert not seen[0, 1]


def test_options_that_would_be_ignored_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Task 'copy' brings its own --vocab"):
        compile_source("copy", None, Sizes("a,b", 3, True))
    with pytest.raises(ValueError, match="--program chooses among a task's programs"):
        compile_source(f"{tmp_path}/mine.py:x", "offset", Sizes("a,b", 3, False))
