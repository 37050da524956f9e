"""The side-by-side with an installed Tracr, on a stand-in for it: Tracr is on no package index."""

import importlib
import sys
from types import ModuleType, SimpleNamespace

import pytest


@pytest.fixture
def benchmark():
    return importlib.import_module("lab.tracr_here")


@pytest.fixture
def stand_in(monkeypatch):
    """Modules of Tracr's names that note what is compiled."""
    compiled = []

    class Library(ModuleType):
        def __getattr__(self, name):
            return lambda *arguments, **options: (name, arguments, options)

    def compile_rasp_to_model(program, **options):
        compiled.append((program, options))

    modules = {name: ModuleType(name) for name in ("tracr", "tracr.compiler", "tracr.rasp")}
    modules["tracr"].__spec__ = SimpleNamespace(name="tracr")
    modules["tracr.compiler"].compiling = SimpleNamespace(compile_rasp_to_model=compile_rasp_to_model)
    modules["tracr.compiler"].lib = Library("lib")
    modules["tracr.rasp"].rasp = SimpleNamespace(tokens="tokens", indices="indices")
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return compiled


ROW = {"name": "sort", "vocab": [1, 2], "max_seq_len": 5, "causal": False}


def test_tracr_is_asked_for_its_own_program_of_the_row(benchmark, stand_in):
    assert benchmark.is_installed()
    assert benchmark.seconds(ROW) >= 0
    (program, options), = stand_in  # fmt: skip
    assert program == ("make_sort", ("tokens", "tokens"), {"max_seq_len": 5, "min_key": 1})
    assert options == {"vocab": {1, 2}, "max_seq_len": 5, "causal": False, "compiler_bos": "BOS"}


def test_what_its_library_lacks_is_left_out(benchmark, stand_in):
    assert benchmark.seconds({**ROW, "name": "shift_by_1"}) is None
    assert not stand_in


def test_without_tracr_nothing_is_asked(benchmark, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not benchmark.is_installed()
