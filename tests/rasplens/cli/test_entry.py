"""The command line as a whole: its help, and how it fails; what each command does is in workflows/."""

import os
import re
import subprocess
import sys
from io import BytesIO, TextIOWrapper

import pytest
import torch

from rasplens import __version__, terminal
from rasplens.cli import entry, main
from rasplens.cli.options import Preset
from rasplens.compare import PRESETS
from rasplens.learned import load_pretrained
from rasplens.model import StorageError


def test_the_version(cli):
    assert cli("--version") == (0, f"rasplens {__version__}\n", "")


def test_help_has_an_example_for_every_command(cli):
    code, overview, _ = cli("--help")
    assert code == 0
    for command in ("run", "compile", "compress", "train", "reproduce", "compare", "verify", "methods"):
        assert command in overview
        code, text, _ = cli(command, "--help")
        assert code == 0
        assert f"Example: rasplens {command}" in " ".join(text.split())
        assert all(option in text for option in ("--json", "--quiet", "--no-color"))


def test_the_help_says_what_exit_codes_mean_and_how_to_complete(cli):
    _, overview, _ = cli("--help")
    text = " ".join(overview.split())
    assert "Exit codes: 0 done" in text
    assert "--install-completion" in text


def test_quiet_shows_no_progress_and_the_result(cli, own_program, monkeypatch):
    monkeypatch.setattr(terminal.err, "_force_terminal", True)
    command = ("verify", "mine.py:histogram", "--vocab", "a,b", "--max-len", "3")
    code, loud, _ = cli(*command)
    assert not terminal.err.quiet
    code, text, errors = cli(*command, "--quiet")
    assert terminal.err.quiet
    assert (code, text, errors) == (0, loud, "")
    cli(*command)
    assert not terminal.err.quiet


def test_no_color_prints_no_escape_codes(own_program, folder):
    command = [
        sys.executable,
        "-m",
        "rasplens",
        "compile",
        "mine.py:histogram",
        "--vocab",
        "a,b",
        "--max-len",
        "3",
    ]
    colours = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    colours.pop("NO_COLOR", None)
    shown, plain = (
        subprocess.run([*command, *more], check=True, capture_output=True, text=True, env=colours).stdout
        for more in ([], ["--no-color"])
    )
    assert "\x1b[" in shown
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", plain)


def test_the_help_of_train_lists_the_recipes(cli):
    _, text, _ = cli("train", "--help")
    assert "copy smeared: 1L4H, d_model=32, smeared keys" in " ".join(text.split())


FAULTS = {  # of a message the data, between dots
    "unknown reproduction": (("reproduce", "sorting"), "no reproduction 'sorting' … sort, compression"),
    "unknown task": (("run", "sorting"), "no task 'sorting' … sort, copy, compression"),
    "missing file": (("run", "sort", "--learned", "no.pt"), "no file no.pt"),
    "foreign file": (("run", "sort", "--learned", "mine.py"), "mine.py … state dict"),
    "unknown program": (("run", "sort", "--program", "bubble"), "no program 'bubble'"),
    "no shipped model": (("run", "compression_notebook"), "'compression_notebook' … compression, copy"),
    "unknown config": (
        ("run", "copy", "--config", "fast"),
        "'fast' is not one of 'quick', 'standard', 'thorough'",
    ),
    "too few inputs": (("run", "copy", "--inputs", "3"), "--inputs: it has to be greater than or equal to 50"),
    "unknown command": (("sort",), "No such command 'sort'"),
    "unknown option": (("run", "sort", "--fast"), "No such option: --fast"),
    "no graphics card": (("run", "sort", "--gpu"), "--device cuda"),
    "missing argument": (("run",), "Missing argument 'TASK'"),
    "unknown recipe": (("train", "copy", "--recipe", "x"), "no recipe 'x' … fast, "),
    "no folder": (("train", "copy", "--out", "a/b.safetensors"), "the folder a does not exist"),
    "neither task nor file": (("compile", "mine"), "no program 'mine'. It is neither a task (sort, copy"),
    "nearly a program": (("compile", "historgam"), "no program 'historgam'. Did you mean 'histogram'?"),
    "nearly a task": (("run", "inductoin"), "no task 'inductoin'. Did you mean 'induction'?"),
    "no number": (("run", "copy", "--seed", "abc"), "--seed: it takes a whole number. Try --help"),
    "no commas": (("train", "histogram", "--vocab", "abc"), "Put commas between several: --vocab a,b,c."),
    "no vocabulary": (("compile", "mine.py:histogram"), "--vocab (such as a,b,c or 0..9) and --max-len"),
    "wrong vocabulary": (
        ("verify", "mine.py:histogram", "--vocab", "a,a", "--max-len", "3"),
        "vocab … 'a' … twice",
    ),
    "token outside the vocabulary": (
        ("compile", "mine.py:histogram", "--vocab", "a,b", "--max-len", "3", "--input", "a,z"),
        "'z' at position 1",
    ),
    "sequence too long": (
        ("compile", "mine.py:histogram", "--vocab", "a,b", "--max-len", "3", "--input", "a,b,a,b"),
        "4 tokens … max_len=3",
    ),
    "no such program": (
        ("compile", "mine.py:reverse", "--vocab", "a", "--max-len", "3"),
        "'reverse' … It defines histogram.",
    ),
    "no s-op": (("compile", "mine.py:number", "--vocab", "a", "--max-len", "3"), "no s-op or task 'number'"),
    "no such source": (("compile", "other.py:x", "--vocab", "a", "--max-len", "3"), "no file other.py"),
    "no such source, and no vocabulary": (("verify", "other.py:x"), "no file other.py"),
    "several models": (
        ("run", "sort", "--learned", "a", "--learned", "b"),
        "one --learned; got several. `rasplens compare`",
    ),
    "several lengths": (
        ("compile", "copy", "--max-len", "3", "--max-len", "4"),
        "one --max-len; got several",
    ),
    "heads of no model": (("run", "sort", "--n-heads", "3"), "--n-heads, --positions"),
    "expected of no model": (
        ("compare", "sort", "--expect", "0.5"),
        "--expect describe",
    ),
    "s-op of no file": (("compile", "histogram", "--output", "x"), "--output is for files in the RASP language"),
    "s-op of no file, as a task": (("run", "histogram", "--output", "x"), "--output is for files in the RASP"),
    "partial task": (("compile", "copy", "--partial", "allow"), "--causal, --partial and --output; omit them"),
    "weights nowhere": (("compile", "copy", "--out", "a/b.safetensors"), "the folder a does not exist"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_mistake_is_one_line_that_says_what_to_do(cli, own_program, fault):
    arguments, message = FAULTS[fault]
    code, text, errors = cli(*arguments)
    assert code == 2
    assert text == ""
    assert all(part in errors for part in message.split(" … "))
    assert errors.count("\n") == 1
    assert "Traceback" not in errors


def test_a_checkpoint_of_another_shape_says_what_differs(cli, tmp_path):
    weights = load_pretrained("sort").transformer.weights
    torch.save({name: torch.tensor(array) for name, array in weights.items()}, tmp_path / "sort.pt")
    code, _, errors = cli("run", "compression", "--learned", "sort.pt")
    assert code == 2
    assert errors == (
        "rasplens: sort.pt does not fit the task 'compression': it has 52 tokens (d_vocab) where it needs 102, "
        "50 logits (d_vocab_out) where it needs 102.\n"
    )
    load_pretrained("copy").save(tmp_path / "copy.safetensors")
    code, _, errors = cli("run", "sort", "--learned", "copy.safetensors")
    assert code == 2
    assert "learned the task 'copy', not 'sort'" in errors


def test_a_program_file_that_fails_is_named(cli, tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0")
    code, _, errors = cli("compile", "broken.py:x", "--vocab", "a", "--max-len", "2")
    assert code == 2
    assert "broken.py, line 1: ZeroDivisionError: division by zero" in errors


def test_the_presets_are_those_of_compare():
    assert list(Preset) == list(PRESETS)


def test_a_fault_of_our_own_keeps_its_traceback(monkeypatch):
    def broken(*args, **kwargs):
        raise KeyError("ours")

    monkeypatch.setattr(entry, "app", broken)
    with pytest.raises(KeyError):
        main(["run", "sort"])


def test_an_interrupt_is_no_traceback(monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "app", interrupted)
    with pytest.raises(SystemExit) as stop:
        main(["run", "sort"])
    assert stop.value.code == 130
    assert "Stopped after" in capsys.readouterr().err


def test_storage_errors_are_what_users_can_mend():
    assert issubclass(StorageError, ValueError)


def test_a_lack_of_memory_is_one_line(monkeypatch, capsys):
    def too_large(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(entry, "app", too_large)
    with pytest.raises(SystemExit, match="2"):
        main(["verify", "sort"])
    assert capsys.readouterr().err == (
        "rasplens: Out of memory. Shorten the sequences, or reduce the vocabulary or the inputs.\n"
    )


def test_sequences_that_would_take_all_memory_are_refused_in_a_line(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["compile", "reverse", "--max-len", "1000000"])
    assert "max_len=1,000,000" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["run", "sorting"], ["run", "sort", "--learned", "nothing.pt"], ["compare", "sort", "--program", "x"]],
)
def test_a_typo_is_seen_before_anything_heavy_is_imported(arguments):
    source = (
        "import sys\nfrom rasplens.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit as stop:\n    assert stop.code == 2\n"
        "assert not {'torch', 'jax', 'plotly'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", source], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert any(what in done.stderr for what in ("task 'sorting'", "file nothing.pt", "program 'x'"))


def test_threads_that_wait_sleep_unless_the_user_says_otherwise():
    told = "import os, sys; from rasplens import cli\ntry: cli.main(['--version'])\nexcept SystemExit: pass\n"
    told += "assert 'torch' not in sys.modules; print(os.environ['OMP_WAIT_POLICY'])"
    for given, policy in ({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE"):
        kept = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
        command = [sys.executable, "-c", told]
        done = subprocess.run(command, env=kept | given, capture_output=True, text=True, check=True)
        assert done.stdout.split()[-1] == policy


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_no_output_fails_on_a_terminal_with_few_characters(cli, own_program, monkeypatch, encoding):
    command = "compile", "mine.py:histogram", "--vocab", "√,→,b", "--max-len", "2"
    for arguments in (("run", "--help"), ("train", "--help"), command, ("compile", "√.py:x"), ("run", "→")):
        streams = {name: TextIOWrapper(BytesIO(), encoding=encoding) for name in ("stdout", "stderr")}
        for name, stream in streams.items():
            monkeypatch.setattr(sys, name, stream)
        with pytest.raises(SystemExit):
            main(list(arguments))
        said = ""
        for stream in streams.values():
            stream.flush()
            # Where a terminal is said to have ASCII alone, click takes it for a wrong setting and writes UTF-8.
            said += stream.buffer.getvalue().decode("utf-8" if encoding == "ascii" else encoding)
        assert said
        if encoding != "ascii" and "--help" not in arguments:
            assert r"\u221a" in said or r"\u2192" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "histogram", "--seed", "-1"),
        ("verify", "histogram", "--samples", "99999999999"),
        ("train", "sort", "--models", "99999999999999999999"),
        ("compare", "copy", "--inputs", "99999999999999"),
        ("compress", "histogram", "--d", "3", "--seed", "99999999999999999999999"),
    ],
)
def test_numbers_out_of_range_are_refused_before_any_work(cli, arguments):
    code, out, error = cli(*arguments)
    assert (code, out) == (2, "")
    assert "it has to be" in error
    assert error.endswith(". Try --help.\n")
