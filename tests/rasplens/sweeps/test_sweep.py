import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread, Timer

import pandas as pd
import pytest

from rasplens import RaspLensError
from rasplens.compare import compare
from rasplens.learned import load_pretrained
from rasplens.model.storage import StorageError, checksum
from rasplens.sweeps import TABLE, Job, claims, comparison_job, job, stored_rows, sweep, workers
from rasplens.sweeps.workers import OVERDUE, run_job


def jobs(name, numbers, **arguments):
    return [Job(f"sweep_jobs:{name}", {"n": n, **arguments}) for n in numbers]


def counts(folder):
    """How often each number was computed."""
    return {int(path.stem): len(path.read_text().split()) for path in Path(folder).glob("*.count")}


@pytest.fixture
def executor():
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.mark.slow
def test_a_sweep_is_one_table_in_the_order_of_its_jobs(tmp_path, executor):
    found = sweep(jobs("squared", [3, 1, 2]), tmp_path, executor)
    assert list(found["n"]) == [3, 1, 2]
    assert list(found["square"]) == [9, 1, 4]
    assert found["error"].isna().all()
    assert (found["seconds"] >= 0).all()
    written = pd.read_parquet(tmp_path / TABLE)
    assert list(written["square"]) == [9, 1, 4]


def test_what_is_kept_is_not_done_again(tmp_path, executor):
    own = {"folder": str(tmp_path)}
    sweep(jobs("squared", [1, 2], **own), tmp_path / "kept", executor)
    more = sweep(jobs("squared", [1, 2, 3], **own), tmp_path / "kept", executor)
    assert list(more["square"]) == [1, 4, 9]
    assert counts(tmp_path) == {1: 1, 2: 1, 3: 1}


def test_the_same_job_twice_is_done_once(tmp_path, executor):
    found = sweep(jobs("squared", [1, 1, 2], folder=str(tmp_path)), tmp_path / "kept", executor)
    assert list(found["n"]) == [1, 2]
    assert counts(tmp_path) == {1: 1, 2: 1}


def test_a_job_that_fails_is_a_row_and_is_tried_again(tmp_path, executor):
    found = sweep(jobs("unlucky", [2, 3, 4]), tmp_path, executor)
    assert found["error"].iloc[1].startswith("ValueError: 3 is unlucky (sweep_jobs.py, line")
    assert found["error"].isna().tolist() == [True, False, True]
    assert found["square"].iloc[[0, 2]].tolist() == [4, 16]
    assert len(list(tmp_path.glob("*.json"))) == 2
    assert stored_rows(tmp_path, jobs("unlucky", [3])[0]) is None


def test_what_is_no_row_is_an_error_of_its_job_alone(tmp_path, executor):
    kinds = [Job("sweep_jobs:giving", {"kind": kind}) for kind in ("array", "number", "numbers")]
    found = sweep([*kinds, *jobs("squared", [2])], tmp_path, executor)
    assert re.search("sweep_jobs:giving.* JSON value: .*type set", found["error"].iloc[0])
    assert found["error"].iloc[[1, 2]].str.contains(r"sweep_jobs:giving.* row,.* got \[").all()
    assert found["square"].iloc[3] == 4


def test_rows_may_come_one_by_one(tmp_path, executor):
    """A benchmark's job does, and each was once an error."""
    found = sweep(jobs("one_by_one", [3]), tmp_path, executor)
    assert found["square"].tolist() == [0, 1, 4]


def test_numbers_of_numpy_are_kept_as_numbers(tmp_path, executor):
    found = sweep([Job("sweep_jobs:giving", {"kind": "numpy"})], tmp_path, executor)
    assert found[["real", "whole"]].to_numpy().tolist() == [[0.5, 3]]


def test_a_sweep_goes_by_the_code_that_there_is_when_it_begins(tmp_path, monkeypatch, executor):
    """Not when its jobs were made; and what a process imported before it was changed does no job."""
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "edited_jobs_of_a_test.py"
    module.write_text("def f(): return {'a': 1}\n")
    made = [Job("edited_jobs_of_a_test:f", {})]
    assert sweep(made, tmp_path / "kept", executor)["a"].tolist() == [1]
    module.write_text("def f(): return {'a': 2}\n")
    again = sweep(made, tmp_path / "kept", executor)
    assert re.search("edited_jobs_of_a_test.*changed", again["error"].item())
    assert len(list((tmp_path / "kept").glob("*.json"))) == 1
    other = run_job(made[0], "other code")
    assert "the code of RASPLens or the version of a library" in other["error"]


def test_a_script_from_standard_input_cannot_start_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "<stdin>"), raising=False)
    with pytest.raises(RaspLensError, match="<stdin>"):
        sweep(jobs("squared", [1]), tmp_path / "kept")


def test_all_may_fail(tmp_path, executor):
    found = sweep(jobs("failing", [1, 2]), tmp_path, executor)
    assert found["error"].notna().all()
    assert (tmp_path / TABLE).is_file()


def test_jobs_may_give_several_rows_and_lists(tmp_path, executor):
    found = sweep(jobs("several", [2, 3]), tmp_path, executor)
    assert list(found["i"]) == [0, 1, 0, 1, 2]
    assert json.loads(found["of"].iloc[1]) == [1, 2]


@pytest.fixture
def kept(tmp_path, executor):
    """A job that is done, and the file of its result."""
    (own,) = jobs("squared", [3], folder=str(tmp_path))
    sweep([own], tmp_path / "kept", executor)
    return own, tmp_path / "kept" / f"{own.key}.json"


DAMAGES = {
    "cut": lambda text: text[: len(text) // 2],
    "another figure": lambda text: text.replace('"square": 9', '"square": 8'),
    "another time": lambda text: text.replace('"seconds": ', '"seconds": 1'),
    "another row": lambda text: text.replace('"rows": [', '"rows": [{"square": 1},'),
    "no object": lambda text: "[]",
    "too deep": lambda text: "[" * 100_000,
    "no text": lambda text: "\ud800",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_results_are_done_again_and_that_is_said(tmp_path, executor, kept, damage):
    own, path = kept
    path.write_bytes(DAMAGES[damage](path.read_text()).encode(errors="surrogatepass"))
    with pytest.warns(UserWarning, match=rf"{own.key}\.json .*squared\(n=3"):
        assert list(sweep([own], tmp_path / "kept", executor)["square"]) == [9]
    assert counts(tmp_path) == {3: 2}
    assert stored_rows(tmp_path / "kept", own)["rows"] == [{"square": 9, "even": False}]


def test_the_file_of_another_job_is_not_taken(tmp_path, executor, kept):
    _, path = kept
    other = jobs("squared", [4], folder=str(tmp_path))[0]
    path.rename(path.with_stem(other.key))
    with pytest.warns(UserWarning, match=rf"{other.key}\.json .*another job, whose key is '"):
        assert list(sweep([other], tmp_path / "kept", executor)["square"]) == [16]
    values = json.loads((tmp_path / "kept" / f"{other.key}.json").read_text())
    forged = {**{k: v for k, v in values.items() if k != "checksum"}, "arguments": {"n": 5}}
    path.with_stem(other.key).write_text(json.dumps({**forged, "checksum": checksum(forged, {})}))
    with pytest.warns(UserWarning, match=r"another job, whose arguments is \{'n': 5\}"):
        assert stored_rows(tmp_path / "kept", other) is None


@pytest.mark.slow
def test_two_sweeps_of_one_folder_do_each_job_once(tmp_path):
    own = jobs("slow", range(6), folder=str(tmp_path))
    tables = []

    def one():
        with ThreadPoolExecutor(1) as worker:
            tables.append(sweep(own, tmp_path / "kept", worker))

    both = [Thread(target=one) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert counts(tmp_path) == dict.fromkeys(range(6), 1)
    assert [list(table["square"]) for table in tables] == [[n * n for n in range(6)]] * 2
    assert not list((tmp_path / "kept").glob(".*.lock"))


def test_a_job_that_another_sweep_has_is_done_when_that_fails(tmp_path, executor, monkeypatch):
    """Its lock goes with it, and nothing is kept."""
    monkeypatch.setattr(claims, "POLL", 0.01)
    (own,) = jobs("squared", [3])
    other = claims.Claims(tmp_path)
    assert other._take(own)
    Timer(0.2, other._release, [own.key]).start()
    assert list(sweep([own], tmp_path, executor)["square"]) == [9]


def test_where_there_can_be_no_lock_that_is_said(tmp_path, executor, monkeypatch):
    def fails(self, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(claims.FileLock, "acquire", fails)
    with pytest.raises(StorageError, match=rf"{re.escape(str(tmp_path))}: Permission denied"):
        sweep(jobs("squared", [1]), tmp_path, executor)


def test_more_jobs_than_an_executor_has_at_once_are_all_done(tmp_path, executor, monkeypatch):
    monkeypatch.setattr(workers, "AT_ONCE", 2)
    assert list(sweep(jobs("squared", range(7)), tmp_path, executor)["square"]) == [n * n for n in range(7)]


def test_finished_jobs_are_read_again_without_reading_the_code_for_each(tmp_path, executor, monkeypatch):
    file = tmp_path / "data"
    file.write_text("data")
    own = [Job("sweep_jobs:squared", {"n": n}, [str(file)]) for n in range(20)]
    sweep(own, tmp_path / "kept", executor)
    read = []
    for name in ("_digest_of_module", "_digest_of_file"):
        digest = getattr(job, name)
        monkeypatch.setattr(job, name, lambda path, digest=digest: (read.append(path), digest(path))[1])
    assert list(sweep(own, tmp_path / "kept", executor)["square"]) == [n * n for n in range(20)]
    assert len(read) == 2
    file.write_text("other")
    assert (
        len({one.key for one in job.as_of_now(own)} & {path.stem for path in (tmp_path / "kept").iterdir()}) == 0
    )


def test_numbers_of_64_bits_are_kept_to_the_last_digit(tmp_path, executor):
    found = sweep(jobs("long", range(3)), tmp_path, executor)
    for table in (found, pd.read_parquet(tmp_path / TABLE)):
        assert table["alone"].iloc[0] == 2**60 + 1
        assert table["alone"].isna().tolist() == [False, True, True]
        assert table["mixed"].iloc[:2].tolist() == [str(2**60 + 1), "0.5"]


@pytest.mark.parametrize(("kind", "message"), [("large", "64 bits"), ("surrogate", "JSON value: ")])
def test_what_no_table_holds_is_the_error_of_its_job_and_the_others_are_kept(tmp_path, executor, kind, message):
    found = sweep([Job("sweep_jobs:giving", {"kind": kind}), *jobs("squared", [2])], tmp_path, executor)
    assert message in found["error"].iloc[0]
    assert pd.read_parquet(tmp_path / TABLE)["square"].iloc[1] == 4


@pytest.mark.slow
def test_a_job_that_hangs_is_ended_and_is_a_row(tmp_path):
    found = sweep(jobs("hanging", range(5)), tmp_path, processes=2, timeout=20)
    assert found["error"].iloc[2] == OVERDUE.format(timeout=20)
    assert found["square"].dropna().tolist() == [0, 1, 9, 16]
    assert found["error"].notna().sum() == 1


def test_progress_tells_what_is_done_failed_and_left(tmp_path, executor):
    seen = []
    sweep(jobs("unlucky", [1]), tmp_path, executor)
    sweep(jobs("unlucky", [1, 2, 3]), tmp_path, executor, progress=seen.append)
    assert [(now.done, now.total) for now in seen] == [(1, 3), (2, 3), (3, 3)]
    assert seen[-1].failed == 1
    assert math.isnan(seen[0].seconds_left)
    assert seen[-1].seconds_left == 0


def test_mistakes_have_their_line(tmp_path, executor):
    with pytest.raises(RaspLensError, match=r"`jobs` is empty"):
        sweep([], tmp_path)
    with pytest.raises(RaspLensError, match="one process; got 0"):
        sweep(jobs("squared", [1]), tmp_path, processes=0)
    with pytest.raises(RaspLensError, match="one thread; got 0"):
        sweep(jobs("squared", [1]), tmp_path, threads=0)
    for timeout in (0, -1, float("inf"), float("nan")):
        with pytest.raises(RaspLensError, match=rf"`timeout` .*seconds.*got {timeout}"):
            sweep(jobs("squared", [1]), tmp_path, timeout=timeout)
    with pytest.raises(RaspLensError, match=r"`timeout` .*executor"):
        sweep(jobs("squared", [1]), tmp_path, executor, timeout=1)
    with pytest.raises(RaspLensError, match=r"'n' .* 1000000.*64 bits"):
        jobs("squared", [10**30])
    with pytest.raises(RaspLensError, match=r"jobs.*got dict"):
        sweep([{"n": 1}], tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"file/folder: Not a directory"):
        sweep(jobs("squared", [1]), tmp_path / "file" / "folder")


def test_a_column_with_an_argument_s_name_and_another_value_is_that_job_s_error(tmp_path):
    own = [Job("sweep_jobs:renaming", {"square": 5}), Job("sweep_jobs:renaming", {"square": 1})]
    found = sweep(own, tmp_path, ThreadPoolExecutor(1))
    assert re.search("'square'.* argument", found["error"].iloc[0])
    assert found["error"].isna().tolist() == [False, True]


def test_comparisons_are_jobs(tmp_path):
    model = tmp_path / "model.safetensors"
    model.write_bytes(b"")
    program = tmp_path / "own.py"
    program.write_text("")
    job = comparison_job("copy", f"{program}:mine", model=str(model))
    assert set(job.files) == {str(program), str(model)}
    with pytest.raises(RaspLensError, match=r"recipe='fast'.*model=.*not both"):
        comparison_job("copy", recipe="fast", model=str(model))


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_preset_is_refused_before_anything_runs():
    with pytest.raises(RaspLensError, match=r"'slowly'.* quick, standard, thorough"):
        comparison_job("copy", config="slowly")


@pytest.mark.slow
def test_a_comparison_job_gives_a_row_of_the_comparison_table(tmp_path):
    found = sweep([comparison_job("induction", program) for program in (None, "nothing")], tmp_path, processes=2)
    direct = compare("induction", load_pretrained("induction"), task="induction", config="quick").verdict
    assert found["verdict"].iloc[0] == direct.answer
    assert found["program_name"].iloc[0] == "induction"
    assert "Task 'induction' has no program 'nothing'" in found["error"].iloc[1]


@pytest.mark.slow
def test_processes_give_the_table_of_one(tmp_path):
    found = [sweep(jobs("squared", range(6)), tmp_path / str(n), processes=n) for n in (1, 2)]
    pd.testing.assert_frame_equal(*(table.drop(columns="seconds") for table in found))


@pytest.mark.slow
def test_a_process_has_the_threads_that_it_is_given(tmp_path):
    """Torch, and the pools of all other libraries."""
    found = [sweep(jobs("threads_of_all", [1]), tmp_path / str(n), processes=1, threads=n) for n in (1, 2)]
    assert [table["threads"].item() for table in found] == [1, 2]
    assert [table["most"].item() for table in found] == [1, 2]


@pytest.mark.slow
def test_a_killed_process_loses_nothing(tmp_path):
    found = sweep(jobs("deadly_once", range(6), folder=str(tmp_path)), tmp_path / "kept", processes=2)
    assert found["error"].isna().all()
    assert list(found["square"]) == [n * n for n in range(6)]


@pytest.mark.slow
def test_a_job_that_kills_its_process_is_a_row(tmp_path):
    found = sweep(jobs("deadly", range(5)), tmp_path, processes=2)
    assert "was killed" in found["error"].iloc[2]
    assert found["square"].dropna().tolist() == [0, 1, 9, 16]


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(tmp_path):
    """Once, they went on, and took the processors from whatever came next."""
    script = tmp_path / "script.py"
    script.write_text(
        "from rasplens.sweeps import Job, sweep\n"
        'if __name__ == "__main__":\n'
        f"    own = [Job('sweep_jobs:endless', {{'n': n, 'folder': {str(tmp_path)!r}}}) for n in (0, 1)]\n"
        f"    sweep(own, {str(tmp_path / 'kept')!r}, processes=2)\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)])

    def beats():
        return [path.stat().st_size for path in tmp_path.glob("*.beats")]

    while len(beats()) < 2:
        assert parent.poll() is None
        time.sleep(0.1)
    parent.kill()
    parent.wait()
    last = None
    for _ in range(10):
        time.sleep(2)
        before, last = last, beats()
    assert last == before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_of_three_workers_of_which_one_is_killed_gives_the_same_table(tmp_path):
    distributed = pytest.importorskip("distributed")
    own = jobs("slow", range(24), folder=str(tmp_path))

    def kill_one():
        """The process that took up a job when half of them had begun: it has done others, and has one at work."""
        while len(begun := list(tmp_path.glob("*.pid"))) < len(own) // 2:
            time.sleep(0.05)
        os.kill(int(begun[0].read_text()), signal.SIGKILL)

    cluster = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=None, memory_limit=None, silence_logs=60
    )
    with cluster, distributed.Client(cluster) as client:
        killer = Thread(target=kill_one)
        killer.start()
        found = sweep(own, tmp_path / "cluster", client.get_executor())
        killer.join()
    assert found["error"].isna().all()
    assert len(list((tmp_path / "cluster").glob("*.json"))) == len(own)
    assert len(found) == len(own)
    assert set(counts(tmp_path).values()) <= {1, 2}  # a result that died with its worker is computed again
    alone = sweep(own, tmp_path / "alone", ThreadPoolExecutor(1))
    pd.testing.assert_frame_equal(found.drop(columns="seconds"), alone.drop(columns="seconds"))
