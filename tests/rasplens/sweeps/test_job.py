import pickle

import pytest

from rasplens import RaspLensError
from rasplens.sweeps import Job


def test_a_key_depends_on_function_arguments_and_files_and_on_nothing_else(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("one")
    job = Job("sweep_jobs:squared", {"n": 1, "folder": None}, [str(file)])
    same = Job("sweep_jobs:squared", {"folder": None, "n": 1}, [str(file)])
    assert job.key == same.key
    others = [
        Job("sweep_jobs:several", {"n": 1, "folder": None}, [str(file)]),
        Job("sweep_jobs:squared", {"n": 2, "folder": None}, [str(file)]),
        Job("sweep_jobs:squared", {"n": 1, "folder": None}),
    ]
    assert job.key not in {other.key for other in others}
    key = job.key
    file.write_text("two")
    assert job.key == key  # what was asked for, even if the file changes meanwhile
    assert Job("sweep_jobs:squared", {"n": 1, "folder": None}, [str(file)]).key != key


def test_a_key_depends_on_the_code_of_its_function(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "own_jobs_of_a_test.py"
    module.write_text("def f(): return {'a': 1}\n")
    key = Job("own_jobs_of_a_test:f", {}).key
    module.write_text("def f(): return {'a': 2}\n")
    assert Job("own_jobs_of_a_test:f", {}).key != key


@pytest.mark.parametrize("said", ["from helper_of_a_test import A", "import helper_of_a_test"])
def test_a_key_depends_on_the_code_that_its_function_s_module_imports_from_beside_it(said, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    helper, further = tmp_path / "helper_of_a_test.py", tmp_path / "further_of_a_test.py"
    (tmp_path / "importing_jobs_of_a_test.py").write_text(f"{said}\ndef f(): return 1\n")
    keys = set()
    for one, two in ((1, 1), (2, 1), (2, 2)):
        helper.write_text(f"import further_of_a_test, os\nA = {one}\n")
        further.write_text(f"import helper_of_a_test\nB = {two}\n")
        keys.add(Job("importing_jobs_of_a_test:f", {}).key)
    assert len(keys) == 3


@pytest.mark.parametrize("said", ["from pack_of_a_test.models import K", "from pack_of_a_test import models"])
def test_a_key_depends_on_the_code_of_packages_that_are_not_installed(said, tmp_path, monkeypatch):
    """On a package's own file, its modules, and what these import from it, near and far."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "jobs_with_packages_of_a_test.py").write_text(f"{said}\ndef f(): return 1\n")
    inner = tmp_path / "pack_of_a_test" / "inner"
    inner.mkdir(parents=True)
    files = [inner.parent / "__init__.py", inner.parent / "models.py", inner / "deep.py", inner / "deeper.py"]
    imports = ["", "from .inner.deep import D", "from . import deeper\nfrom ..models import K", ""]
    keys = set()
    for changed in (None, *files):
        for file, said_there in zip(files, imports, strict=True):
            file.write_text(f"{said_there}\nA = {2 if file == changed else 1}\n")
        keys.add(Job("jobs_with_packages_of_a_test:f", {}).key)
    assert len(keys) == 1 + len(files)


def test_code_that_has_changed_since_it_was_imported_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "changing_jobs_of_a_test.py"
    module.write_text("def f(): return {'a': 1}\n")
    assert Job("changing_jobs_of_a_test:f", {}).function()() == {"a": 1}
    module.write_text("def f(): return {'a': 2}\n")
    with pytest.raises(RaspLensError, match=r"changing_jobs_of_a_test.*changed"):
        Job("changing_jobs_of_a_test:f", {}).function()


def test_a_key_does_not_depend_on_comments_and_docstrings(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "described_jobs_of_a_test.py"
    written = [
        "A = 1\ndef f(): return {'a': A}\n",
        "'Jobs.'\nA = 1\n'A number.'\n\ndef f():\n    'A row.'  # of one\n    return {'a': A}\n",
        "A = 1\ndef f(): return {'b': A}\n",
        "A = 1\ndef f(): return {'a': 'A'}\n",
    ]
    keys = []
    for text in written:
        module.write_text(text)
        keys.append(Job("described_jobs_of_a_test:f", {}).key)
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_a_key_depends_on_the_code_of_the_package(monkeypatch):
    from rasplens.sweeps import job as module

    key = Job("sweep_jobs:squared", {"n": 1}).key
    monkeypatch.setattr(module, "_digest_of_package", lambda: "other")
    assert Job("sweep_jobs:squared", {"n": 1}).key != key


def test_a_key_depends_on_the_versions_of_what_computes(monkeypatch):
    from rasplens.sweeps import job as module

    key = Job("sweep_jobs:squared", {"n": 1}).key
    assert any(one.startswith("torch 2") for one in module._versions())
    monkeypatch.setattr(module, "_versions", lambda: ["torch 9"])
    assert Job("sweep_jobs:squared", {"n": 1}).key != key


def test_the_digest_of_the_package_reads_every_act():
    from rasplens.sweeps.job import package_files

    names = {path.name for path in package_files()}
    assert {"forward.py", "compiler.py", "task.py", "recipe.py", "pipeline.py", "sweep.py"} <= names


def test_jobs_travel():
    job = Job("sweep_jobs:squared", {"n": 1})
    again = pickle.loads(pickle.dumps(job))
    assert again == job
    assert again.key == job.key


@pytest.mark.parametrize(
    ("run", "arguments", "files", "message"),
    [
        ("squared", {}, (), "\"module:name\"; got 'squared'"),
        ("sweep_jobs:", {}, (), "\"module:name\"; got 'sweep_jobs:'"),
        (len, {}, (), '"module:name"; got builtin_function_or_method'),
        ("__main__:f", {}, (), "__main__:f .*script or notebook"),
        ("sweep_jobs:squared", {"n": object()}, (), "'n' .*JSON value.*got <object"),
        ("sweep_jobs:squared", {"n": (1, 2)}, (), r"'n' .*JSON value.*got \(1, 2\)"),
        ("sweep_jobs:squared", {"n": float("nan")}, (), "'n' .*JSON value.*got nan"),
        ("sweep_jobs:squared", {}, ("nowhere.py",), "no file nowhere.py"),
    ],
)
def test_what_is_no_job_is_refused(run, arguments, files, message):
    with pytest.raises(RaspLensError, match=message):
        Job(run, arguments, files)


def test_a_function_that_is_not_there_is_told():
    with pytest.raises(RaspLensError, match="no function sweep_jobs:nothing"):
        Job("sweep_jobs:nothing", {}).function()
    with pytest.raises(RaspLensError, match="no module nowhere_at_all"):
        _ = Job("nowhere_at_all:nothing", {}).key


def test_arguments_cannot_be_changed():
    with pytest.raises(TypeError):
        Job("sweep_jobs:squared", {"n": 1}).arguments["n"] = 2
