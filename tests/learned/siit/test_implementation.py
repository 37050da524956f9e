import numpy as np
import pytest

from rasplens.compare import compare
from rasplens.compile import programs, rasp
from rasplens.errors import RaspLensError
from rasplens.learned import (
    SIITRecipe,
    load_implementation,
    load_learned,
    ordinary_architecture,
    train_to_implement,
)
from rasplens.learned.errors import TrainingError
from rasplens.tasks import build_task, task_from_program

FEW = SIITRecipe(cycles=1, steps=1_000, batch_size=64, learning_rate=5e-3, warmup=50, weight_decay=0.1, pool=500)


@pytest.fixture(scope="module")
def trained(task, compiled):
    seen = []
    shape = ordinary_architecture(compiled, d_model=32)
    model = train_to_implement(compiled, task, shape, FEW, progress=seen.append)
    return model, seen


@pytest.mark.slow
def test_its_nodes_compute_the_program_s_variables(trained):
    model, _ = trained
    assert min(model.accuracy.least.values()) > 0.9
    assert model.transformer.config.d_model == 32
    assert repr(model).startswith("<SIITModel of 'again': L0H0: previous; L0 MLP: is_same; L1H0: again; behaviour")


@pytest.mark.slow
def test_it_tells_how_it_goes(trained):
    _, seen = trained
    assert [report.step for report in seen] == [200, 400, 600, 800, 1000]
    assert all(seen[-1].losses[name] < seen[0].losses[name] for name in ("behaviour", "interchange", "strict"))
    assert 0 < seen[0].seconds < seen[-1].seconds


@pytest.mark.slow
def test_a_stored_model_says_what_its_nodes_compute(trained, tmp_path):
    model, _ = trained
    model.save(tmp_path / "again.safetensors")
    stored = load_learned(tmp_path / "again.safetensors")
    assert stored.provenance["circuit"] == {"L0H0": ["previous"], "L0 MLP": ["is_same"], "L1H0": ["again"]}
    assert stored.provenance["implementation"] == pytest.approx(model.accuracy.least)
    np.testing.assert_array_equal(stored.transformer.W_E, model.transformer.W_E)


@pytest.mark.slow
def test_a_stored_model_comes_back_with_its_circuit(trained, task, compiled, tmp_path):
    model, _ = trained
    path = tmp_path / "again.safetensors"
    model.save(path)
    stored = load_implementation(path, compiled, task)
    assert stored.circuit == model.circuit
    assert stored.accuracy == model.accuracy
    assert stored.prefix == model.prefix
    with pytest.raises(RaspLensError, match=r"again\.safetensors .*not .*implement 'histogram'"):
        load_implementation(path, programs.histogram(), task)
    longer = task_from_program(compiled.program, task.vocab, task.n_ctx + 1)
    with pytest.raises(RaspLensError, match=r" 6 .*3 tokens.* 7 .*3 tokens"):
        load_implementation(path, compiled.program, longer)
    others = task_from_program(compiled.program, tuple(reversed(task.vocab)), task.n_ctx)
    with pytest.raises(RaspLensError, match=r"again\.safetensors .*tokens, inputs or answers.*vocabulary"):
        load_implementation(path, compiled.program, others)


@pytest.mark.slow
def test_a_seed_gives_the_same_model_and_another_seed_another(task, compiled):
    shape = ordinary_architecture(compiled, d_model=16)
    short = SIITRecipe(steps=2, cycles=1, batch_size=8, warmup=1, pool=50)
    one, again, other = (
        train_to_implement(compiled, task, shape, short, seed).transformer.W_E for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.01


@pytest.mark.slow
def test_a_loss_that_is_no_number_is_refused(task, compiled):
    recipe = SIITRecipe(steps=20, batch_size=8, warmup=0, learning_rate=1e30, pool=50)
    with pytest.raises(TrainingError, match=r"loss.* step \d+.*learning rate"):
        train_to_implement(compiled, task, ordinary_architecture(compiled, d_model=16), recipe)


def test_a_program_without_parts_is_refused():
    with pytest.raises(RaspLensError, match=r"'tokens' .*no circuit"):
        train_to_implement(rasp.tokens, task_from_program(rasp.tokens, "ab", 6), recipe=FEW)


@pytest.mark.slow
def test_answers_of_several_labels_are_refused():
    def seen(tokens):
        return [set(tokens[: i + 1]) for i in range(4)]

    labels = build_task("seen", "{x:4}", tokens="abc", answers=seen, readout="labels")
    with pytest.raises(RaspLensError, match=r"single labels.*'seen'"):
        train_to_implement(programs.histogram(), labels)


@pytest.mark.release
def test_a_comparison_recognises_it_and_not_one_that_only_answers_alike():
    """Routes are its own affair: the training says what nodes give, not what they read.

    The same shape trained on answers alone is the control: its nodes are its own.
    """
    task = task_from_program(programs.induction(), "abcd", 7, causal=True)
    model = train_to_implement("induction", task)
    assert min(model.accuracy.least.values()) > 0.98
    levels = compare("induction", model, task=task, config="quick").verdict.levels
    assert (levels["answers"], levels["variables"]) == ("implements", "implements")
    other = SIITRecipe(steps=3_000, cycles=1, interchange=0.0, strict=0.0)
    alone = train_to_implement("induction", task, recipe=other)
    assert alone.accuracy.behaviour > 0.98
    assert min(alone.accuracy.least.values()) < 0.9
