"""Workers of sweeps find the support folder by PYTHONPATH."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def support_on_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "support"))
