import pytest
from explaining_samples import sample_of

from rasplens.compile import programs


@pytest.fixture(scope="session")
def histogram():
    return sample_of(programs.histogram())


@pytest.fixture(scope="session")
def induction():
    return sample_of(programs.induction(), n=5, causal=True)


@pytest.fixture(scope="session")
def slots():
    return sample_of(programs.slots(), n=5)
