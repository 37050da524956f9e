from dataclasses import replace

import numpy as np
import pytest

from rasplens.learned import load_pretrained
from rasplens.reproductions.copying import COPY, COPY_SMEARED, PROMPTS, completed, completion
from rasplens.tasks import get_task


@pytest.fixture(scope="module")
def task():
    return get_task("copy")


@pytest.fixture(scope="module")
def copier():
    return load_pretrained("copy").transformer


@pytest.fixture(scope="module")
def blind(copier):
    """The same with logits that are all alike: it writes the first letter, whatever stands there."""
    weights = {**copier.weights, "unembed.W_U": np.zeros_like(copier.W_U)}
    return replace(copier, weights=weights)


def test_a_copier_goes_on_with_the_block_and_a_blind_model_with_one_letter(task, copier, blind):
    assert completion(task, copier, "ABCDEFABCDEF") == "ABCDEFABCDEF"
    assert completion(task, blind, "ABCDEFABCDEF") == 12 * "A"


def test_the_share_of_blocks_that_are_completed(task, copier, blind):
    assert completed(task, copier) > 0.99
    assert completed(task, blind) == 0


def test_each_prompt_has_a_finding_and_only_two_blocks_claim_anything(task, copier):
    """The shipped model copies: that is right for one publication, and wrong for the other."""
    copies, fails = COPY_SMEARED.findings(task, copier), COPY.findings(task, copier)
    for found, holds in ((copies, True), (fails, False)):
        said = {row.measure: row.holds for row in found if row.measure.startswith("completion of")}
        assert said == {
            f"completion of {prompt} ({kind})": holds if kind == "two blocks" else None
            for prompt, kind in PROMPTS.items()
        }


def test_what_the_two_publications_share_is_stated_once():
    assert (COPY.source, COPY.task, COPY.seed) == (COPY_SMEARED.source, COPY_SMEARED.task, COPY_SMEARED.seed)
    assert (COPY.recipe, COPY_SMEARED.recipe) == ("published", "smeared")
