from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from rasplens.compile import CompileError
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.errors import RaspLensError
from rasplens.learned.compressor.compressed_model import compressed_by
from rasplens.sources import Sizes, compile_source, learned_model, parse_vocab, reference, task_source
from rasplens.sources.files import file_source
from rasplens.sources.models import _token_map
from rasplens.sources.vocabularies import shown
from rasplens.tasks import build_task, get_task


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a,b,c", ["a", "b", "c"]),
        ("0..3", [0, 1, 2, 3]),
        ("-1..1,x", [-1, 0, 1, "x"]),
        ("7,a..c,(,)", [7, "a", "b", "c", "(", ")"]),
        ("ab..cd", ["ab..cd"]),
    ],
)
def test_vocabularies_are_lists_and_ranges(text, tokens):
    assert parse_vocab(text) == tokens


@pytest.mark.parametrize("text", ["", "a,,b", ",a"])
def test_an_empty_token_is_refused(text):
    with pytest.raises(ValueError, match=r"--vocab .*a,b,c") as error:
        parse_vocab(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["a", "b"], "2 tokens: a, b"),
        (["abc"], "1 token: abc"),
        ([7], "1 token: 7"),
        (range(12), "12 tokens: 0, 1, 2, 3, 4, 5, 6, 7, …"),
    ],
)
def test_a_vocabulary_is_said_as_it_was_understood(tokens, said):
    assert shown(list(tokens)) == said


def test_an_empty_range_is_refused():
    with pytest.raises(ValueError, match=r"3\.\.0 of --vocab.* 0\.\.3"):
        parse_vocab("3..0")
    with pytest.raises(ValueError, match=r"c\.\.a of --vocab.* a\.\.c"):
        parse_vocab("c..a")


def test_the_first_program_is_the_reference():
    task = get_task("copy")
    assert reference(task, None).output == "offset"
    assert reference(task, "induction").output == "induction"


def test_without_a_path_the_shipped_model_is_taken():
    assert learned_model(get_task("sort"), None).model.task == "sort"


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
    with pytest.raises(ValueError, match="'copy' brings its own --vocab"):
        compile_source("copy", None, Sizes("a,b", 3, True))
    with pytest.raises(ValueError, match=r"--program .*reverse"):
        compile_source("reverse", "offset", Sizes())
    (tmp_path / "mine.rasp").write_text("x = tokens; y = indices;")
    with pytest.raises(ValueError, match=r"--output .*mine\.rasp:x"):
        compile_source(f"{tmp_path}/mine.rasp:x", None, Sizes("a,b", 3, output="y"))
    (tmp_path / "mine.py").write_text("from rasplens.compile.rasp import tokens as x")
    with pytest.raises(ValueError, match=r"--output .*FILE\.py:NAME"):
        compile_source(f"{tmp_path}/mine.py:x", None, Sizes("a,b", 3, output="y"))


OWN = """
from rasplens.compile import rasp
from rasplens.tasks import get_task

histogram = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("histogram")
everywhere = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)
word = rasp.Aggregate(everywhere, rasp.tokens).named("word")
task = get_task("copy", n_letters=6, block=3, length=8)


def later():
    return task
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "own.rasp").write_text('x = count(tokens, "1"); y = reverse(tokens);')
    return tmp_path


def test_tasks_come_from_files(own):
    assert task_source(f"{own}/own.py:task").n_ctx == 8
    assert task_source(f"{own}/own.py:later").n_ctx == 8
    task = task_source(f"{own}/own.py:histogram", Sizes("a..c", 4))
    assert (task.name, task.vocab, task.n_ctx) == ("histogram", ("a", "b", "c"), 4)
    assert task.accuracy(task.programs["histogram"]).token == 1.0
    task = task_source(f"{own}/own.rasp", Sizes("0..2", 3))
    assert (task.name, task.vocab) == ("y", ("0", "1", "2"))  # the language's tokens are strings
    assert task_source(f"{own}/own.rasp:x", Sizes("0..2", 3)).name == "x"
    assert task_source(f"{own}/own.rasp", Sizes("0..2", 3, output="x")).name == "x"


def test_a_program_of_the_library_is_a_task_on_small_inputs_of_its_own_or_on_others():
    task = task_source("frac_prevs")
    assert task.n_ctx == CATALOGUE["frac_prevs"].max_len
    assert task.visible.sum() < task.visible.size  # it is a causal one
    other = task_source("frac_prevs", Sizes("a..d", 7))
    assert (other.vocab, other.n_ctx) == (("a", "b", "c", "d"), 7)
    assert task_source("sort").name == "sort" in CATALOGUE  # a task before a program of that name
    with pytest.raises(RaspLensError, match="'sort' brings its own"):
        task_source("sort", Sizes("a..d"))
    with pytest.raises(RaspLensError, match=r"no task 'histogramm'.* histogram,"):
        task_source("histogramm")


def test_tasks_come_from_data(own):
    lines = ['{"tokens": "%s %s", "answers": "%s"}' % (a, b, b) for a in "abc" for b in "abcd"]  # noqa: UP031
    (own / "data.jsonl").write_text("\n".join(lines))
    task = task_source(f"{own}/data.jsonl")
    assert (task.name, task.n_ctx) == ("data", 2)
    assert task.visible.all()
    assert not task_source(f"{own}/data.jsonl", Sizes(causal=True)).visible.all()
    with pytest.raises(RaspLensError, match=r"data\.jsonl' brings its own --vocab"):
        task_source(f"{own}/data.jsonl", Sizes("a,b"))
    with pytest.raises(RaspLensError, match=r"no file .*none\.csv"):
        task_source(f"{own}/none.csv")
    with pytest.raises(RaspLensError, match="'data' has no program"):
        reference(task, None)


@pytest.mark.parametrize(
    ("source", "sizes", "said"),
    [
        ("own.py", Sizes(), r"own\.py:NAME"),
        ("own.py:histogram", Sizes(), r"own\.py:histogram.* --vocab .*--max-len"),
        ("own.py:histogram", Sizes("a,b"), r"own\.py:histogram.* --vocab .*--max-len"),
        ("own.py:task", Sizes("a,b", 3), r"own\.py:task' brings its own --vocab"),
        ("own.py:nothing", Sizes(), "It defines histogram, word, task"),
        ("own.rasp:nothing", Sizes("a,b", 3), "no s-op 'nothing'"),
        ("none.rasp", Sizes(), r"no file .*none\.rasp"),
        ("own.rasp:", Sizes(), r"own\.rasp:'.* FILE\.rasp:NAME"),
    ],
)
def test_what_is_no_task(own, source, sizes, said):
    with pytest.raises(RaspLensError, match=said):
        task_source(f"{own}/{source}", sizes)


@pytest.mark.parametrize("source", [":", ":histogram", "own.py:"])
def test_a_colon_has_a_file_before_it_and_a_name_behind_it(source):
    with pytest.raises(RaspLensError, match=rf"{source!r} .*FILE\.py:NAME or FILE\.rasp:NAME"):
        file_source(source)


def test_programs_of_a_comparison_come_from_files(own):
    task = get_task("copy", n_letters=6, block=3, length=8)
    assert reference(task, f"{own}/own.py:histogram").output == "histogram"
    assert reference(task, f"{own}/own.rasp:x").output == "x"
    with pytest.raises(RaspLensError, match=r"own\.py:task is a task"):
        reference(task, f"{own}/own.py:task")


def test_what_is_undefined_may_be_allowed(own):
    with pytest.raises(CompileError, match="--partial allow"):
        compile_source(f"{own}/own.py:word", None, Sizes("a,b", 2))
    compiled = compile_source(f"{own}/own.py:word", None, Sizes("a,b", 2, partial="allow"))
    assert compiled("aa") == ["a", "a"]


@pytest.mark.parametrize("text", ["{", "", "[" * 100_000, '{"a": 1' + "0" * 10_000 + "}"])
def test_a_token_map_that_is_no_json(tmp_path, text):
    torch.save({"embed.W_E": torch.ones(2, 2)}, tmp_path / "mine.pt")
    (tmp_path / "tokens.json").write_text(text)
    with pytest.raises(RaspLensError, match=r"tokens\.json .*JSON") as refused:
        learned_model(get_task("sort"), tmp_path / "mine.pt")
    assert "\n" not in str(refused.value)


def test_a_range_that_no_memory_holds_is_refused_before_it_is_listed():
    with pytest.raises(ValueError, match=r"0\.\.99999999999 of --vocab .*1,000,000 tokens"):
        parse_vocab("0..99999999999")


def test_digits_that_are_no_number_to_python_are_a_word():
    assert parse_vocab("9" * 5000) == ["9" * 5000]


@pytest.mark.parametrize(("ids", "which"), [({"b": [1, 2]}, "'b'"), ({"b": [7], "c": [7]}, "'c'.*'b'")])
def test_a_token_without_an_id_of_its_own_is_named(tmp_path, ids, which):
    """It has several, or that of another one, which is named as well."""
    task = build_task("own", "{x:3}", tokens="abc", answers=lambda t: t[0], read="last")
    known = {token: [i + 20] for i, token in enumerate("abc")} | ids
    tokenizer = SimpleNamespace(encode=lambda text, add_special_tokens: known[text])
    bridge = SimpleNamespace(cfg=SimpleNamespace(d_vocab=100), tokenizer=tokenizer)
    with pytest.raises(RaspLensError, match=which):
        _token_map(task, tmp_path, bridge)
    known |= {"b": [1], "c": [2]}
    assert _token_map(task, tmp_path, bridge) == {"a": 20, "b": 1, "c": 2}


def test_without_the_device_that_is_asked_for_the_cpu_is_used(tmp_path, capsys):
    task = get_task("induction")
    ends = {"bos_token_id": None, "eos_token_id": None}
    sizes = GPT2Config(vocab_size=len(task.vocab), n_positions=task.n_ctx, n_embd=4, n_layer=1, n_head=1, **ends)
    GPT2LMHeadModel(sizes).save_pretrained(tmp_path)
    studied = learned_model(task, tmp_path, device="nowhere")
    assert "no device 'nowhere'" in (said := " ".join(capsys.readouterr().err.split()))
    assert said.endswith("The CPU is used.")
    assert {each.device.type for each in studied.model.parameters()} == {"cpu"}
