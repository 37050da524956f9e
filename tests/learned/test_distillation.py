import numpy as np
import pytest
import torch

from rasplens.compile import compile_program, rasp
from rasplens.learned.distillation import distill
from rasplens.model import HookedModel, disguise


def compiled_shift():
    back = rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 1)
    return compile_program(rasp.Aggregate(back, rasp.tokens, default="a").named("shift"), "abc", 4, causal=True)


def all_tokens(compiled):
    longest = [ids for ids in compiled.inputs.all_ids() if ids.shape[1] == compiled.inputs.max_len]
    return compiled.with_bos(np.concatenate(longest))


@pytest.fixture(scope="module")
def distilled():
    compiled = compiled_shift()
    return compiled, distill(compiled, all_tokens(compiled), seed=0, steps=800)


@pytest.mark.slow
def test_a_distilled_model_attends_and_answers_like_its_teacher_with_other_weights(distilled):
    compiled, student = distilled
    tokens, teacher = all_tokens(compiled), compiled.transformer
    assert (student.transformer(tokens).argmax(-1) == teacher(tokens).argmax(-1))[:, 1:].mean() > 0.99
    patterns = [
        HookedModel(model).run_with_cache(torch.as_tensor(tokens[:8]))[1]["blocks.0.attn.hook_pattern"]
        for model in (student.transformer, teacher)
    ]
    assert (patterns[0] - patterns[1]).abs().mean() < 0.02
    twin = disguise(teacher, 0, kinds=("residual",))
    assert np.abs(student.transformer.W_E - twin.W_E).mean() > 0.01  # it is trained, not copied


@pytest.mark.slow
def test_it_follows_interventions_in_the_directions_of_its_teacher(distilled):
    """Where the tokens are those of another input behind the embedding, and nothing else, it answers for them."""
    compiled, student = distilled
    twin = disguise(compiled, 0, kinds=("residual",))
    tokens = torch.as_tensor(all_tokens(compiled))
    projector = torch.as_tensor(twin.variables["tokens"].projector, dtype=torch.float32)
    point = "blocks.0.hook_resid_pre"

    def answers(model):
        hooked = HookedModel(model)
        _, cache = hooked.run_with_cache(tokens)
        others = cache[point].flip(0)
        edit = (point, lambda stream, hook: stream + (others - stream) @ projector)
        return hooked.run_with_hooks(tokens, fwd_hooks=[edit]).argmax(-1)[:, 1:]

    wanted = answers(twin.transformer)
    assert (answers(student.transformer) == wanted).float().mean() > 0.95
    assert (torch.as_tensor(compiled.transformer(tokens.numpy()).argmax(-1))[:, 1:] == wanted).float().mean() < 0.6


@pytest.mark.slow
def test_the_error_says_how_far_it_came(distilled):
    compiled, student = distilled
    assert 0 < student.error < 0.1
    assert distill(compiled, all_tokens(compiled), seed=0, steps=1).error > 0.5


@pytest.mark.slow
def test_without_training_it_does_not():
    compiled = compiled_shift()
    tokens = all_tokens(compiled)
    student = distill(compiled, tokens, seed=0, steps=1).transformer
    assert (student(tokens).argmax(-1) == compiled.transformer(tokens).argmax(-1))[:, 1:].mean() < 0.9


def test_without_a_step_or_an_input_nothing_is_distilled():
    compiled = compiled_shift()
    tokens = all_tokens(compiled)
    for given, steps in ((tokens, 0), (tokens[:0], 10)):
        with pytest.raises(ValueError, match=r"steps=.* inputs"):
            distill(compiled, given, steps=steps)
