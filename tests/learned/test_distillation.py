import numpy as np
import torch

from rasplens.compile import compile_program, rasp
from rasplens.learned.distillation import distill_activations
from rasplens.model import HookedModel, disguise


def compiled_shift():
    back = rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 1)
    return compile_program(rasp.Aggregate(back, rasp.tokens, default="a").named("shift"), "abc", 4, causal=True)


def test_a_distilled_model_attends_and_answers_like_its_teacher_with_other_weights():
    compiled = compiled_shift()
    sequences = [[*"abca"], [*"cabb"], [*"bbac"], [*"ccab"], [*"aabc"], [*"bcba"], [*"acac"], [*"babc"]]
    tokens = compiled.encode(sequences * 30)
    student, teacher = distill_activations(compiled.transformer, tokens, seed=0, steps=800), compiled.transformer
    assert (student(tokens).argmax(-1) == teacher(tokens).argmax(-1))[:, 1:].mean() > 0.99
    patterns = [
        HookedModel(model).run_with_cache(torch.as_tensor(tokens[:8]))[1]["blocks.0.attn.hook_pattern"]
        for model in (student, teacher)
    ]
    assert (patterns[0] - patterns[1]).abs().mean() < 0.02
    twin = disguise(teacher, 0, kinds=("residual",))
    assert np.abs(student.W_E - twin.W_E).mean() > 0.01  # it is trained, not copied


def test_without_training_it_does_not():
    compiled = compiled_shift()
    tokens = compiled.encode([[*"abca"], [*"cabb"], [*"bbac"]])
    student = distill_activations(compiled.transformer, tokens, seed=0, steps=1)
    assert (student(tokens).argmax(-1) == compiled.transformer(tokens).argmax(-1))[:, 1:].mean() < 0.9
