import os
import threading

import pytest

from rasplens.compare.evidence.parallel import in_parallel


@pytest.fixture
def processors(monkeypatch):
    """Four, whatever the machine has."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)


def most_at_once(n_items):
    """How many items are worked on at a time: each waits until that many are, or nobody else comes."""
    lock, at_work, most = threading.Lock(), 0, 0

    def work(item):
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        threading.Event().wait(0.05)
        with lock:
            at_work -= 1
        return item

    assert list(in_parallel(work, range(n_items))) == list(range(n_items))
    return most


@pytest.mark.parametrize(("bound", "threads"), [(None, 4), ("1", 1), ("2", 2), ("100", 4), ("4,2", 4), ("0", 4)])
def test_a_thread_a_processor_or_as_many_as_a_sweep_lets(processors, monkeypatch, bound, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if bound is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", bound)
    assert most_at_once(8) <= threads
    if threads == 1:
        assert most_at_once(3) == 1
    else:
        assert most_at_once(8) > 1
