import numpy as np
import pytest
import torch

from rasplens.compare import StudiedModel, as_studied_model
from rasplens.errors import RaspLensError
from rasplens.learned.compressor.compressed_model import compressed_by
from rasplens.model import Config, HookedModel, Transformer
from rasplens.model.config import weight_shapes


def test_a_models_own_bos_is_left_out_throughout(offset, task):
    studied = as_studied_model(offset, task, task.held_out[:20])
    assert studied.vocabulary.positions[0] == 1
    assert studied.tokens.shape == (20, task.n_ctx + 1)
    assert studied.n_pos == task.n_ctx
    assert studied.residual("blocks.0.hook_resid_pre").shape[:2] == (20, task.n_ctx)
    pattern = studied.pattern(0)
    assert pattern.shape == (20, 1, task.n_ctx, task.n_ctx)
    np.testing.assert_allclose(pattern[:, 0, 2, 0], 1, atol=1e-6)  # position 2 reads two back
    np.testing.assert_allclose(pattern[:, 0, 1], 0, atol=1e-6)  # there is nothing two back: it looks at the BOS


def test_a_model_without_a_bos_keeps_all_its_positions(noise, task):
    studied = as_studied_model(noise, task, task.held_out[:20])
    assert studied.vocabulary.positions[0] == 0
    np.testing.assert_allclose(studied.pattern(1).sum(axis=-1), 1, atol=1e-5)


def test_a_compressed_model_keeps_the_words_and_the_heads_of_its_program(offset, task):
    projection = np.eye(offset.transformer.config.d_model)
    studied = as_studied_model(compressed_by(offset, projection), task, task.held_out[:20])
    assert studied.right().all()
    assert studied.heads == tuple(offset.heads)
    blind = as_studied_model(compressed_by(offset, 0 * projection), task, task.held_out[:20])
    assert not blind.right().all()


def test_answers_are_in_the_tasks_codes(offset, noise, task):
    ids = task.held_out[:50]
    assert as_studied_model(offset, task, ids).right().all()
    studied = as_studied_model(noise, task, ids)
    expected = noise(ids)[:, list(task.loss_positions)].argmax(-1)
    np.testing.assert_array_equal(studied.answers(), expected)
    np.testing.assert_array_equal(studied.right(), expected == task.target(ids))


def test_only_heads_that_compute_something_are_listed(induction, noise, task):
    assert as_studied_model(induction, task, task.held_out[:2]).heads == ((0, 0), (1, 0))
    studied = as_studied_model(noise, task, task.held_out[:2])
    assert studied.heads == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert studied.heads_of(1) == [0, 1]


def test_each_state_of_the_residual_stream_is_listed_once(noise, induction, task):
    assert as_studied_model(noise, task, task.held_out[:2]).residual_points == [
        "blocks.0.hook_resid_pre",
        "blocks.0.hook_resid_post",
        "blocks.1.hook_resid_post",
    ]


def test_the_first_inputs_are_the_same_inputs(noise, task):
    studied = as_studied_model(noise, task, task.held_out[:20])
    first = studied.first(3)
    assert first.n_inputs == 3
    np.testing.assert_array_equal(first.answers(), studied.answers()[:3])
    np.testing.assert_allclose(first.pattern(0), studied.pattern(0)[:3], atol=1e-6)


def test_edits_are_seen_in_batches_and_only_while_they_last(noise, task, monkeypatch):
    monkeypatch.setattr("rasplens.compare.subject.studied_model.BATCH", 7)
    studied = as_studied_model(noise, task, task.held_out[:20])
    sizes = []

    def zeroed(pattern, hook):
        sizes.append(len(pattern))
        return pattern * 0

    edited = studied.edited_answers([("blocks.0.attn.hook_pattern", zeroed)])
    assert sizes == [7, 7, 6]
    assert edited.shape == studied.answers().shape
    assert (edited != studied.answers()).any()
    np.testing.assert_array_equal(studied.on(studied.ids).answers(), studied.answers())


def test_a_model_without_layers_is_refused(task):
    config = Config(0, 1, 4, 4, task.n_ctx, len(task.vocab), len(task.outputs))
    weights = {name: np.ones(shape) for name, shape in weight_shapes(config).items()}
    model = Transformer(config, weights, np.zeros((0, task.n_ctx, task.n_ctx), dtype=bool))
    with pytest.raises(RaspLensError, match="no layers"):
        as_studied_model(model, task, task.held_out[:2])


def test_a_model_without_the_hook_points_is_refused(noise, task):
    model = HookedModel(noise)
    del model.hook_dict["blocks.1.attn.hook_pattern"]
    with pytest.raises(ValueError, match=r"no hook point 'blocks\.1\.attn\.hook_pattern'"):
        as_studied_model(model, task, task.held_out[:5])


def test_the_residual_stream_is_that_of_the_tasks_positions(offset, task):
    studied = as_studied_model(offset, task, task.held_out[:6])
    _, cache = offset.transformer.run_with_cache(studied.tokens.numpy())
    for point in studied.residual_points:
        np.testing.assert_allclose(studied.residual(point), cache[point][:, 1:], atol=1e-5)
    assert not np.allclose(studied.residual(point), cache[point][:, :-1], atol=1e-2)


def test_an_edit_starts_from_what_is_known_before_it(induction, task, monkeypatch):
    """Only the layers from the first hook on run again, on the inputs that are asked for, and say the same."""
    studied, rows = as_studied_model(induction, task, task.held_out[:20]), np.array([3, 7, 3])
    assert studied.n_layers == 2
    passes, run = [], HookedModel.forward

    def counted(self, *given, start_at_layer=None):
        passes.append(start_at_layer)
        return run(self, *given, start_at_layer=start_at_layer)

    def edits(layer):
        return [(f"blocks.{layer}.attn.hook_pattern", lambda pattern, hook: pattern.flip(-1))]

    studied.whole_residual(1)
    monkeypatch.setattr(HookedModel, "forward", counted)
    for layer in range(2):
        whole = studied.model.run_with_hooks(studied.tokens[rows], fwd_hooks=edits(layer))
        found = studied.logits(edits(layer), rows)
        np.testing.assert_allclose(found, whole[:, studied.answer_places].detach(), atol=1e-4)
        assert not np.allclose(found, studied.clean_logits[rows], atol=1e-2)
    assert passes == [None, None, None, None, 1]


@pytest.mark.parametrize("layers", [(0,), (1,), (0, 0), (0, 1)])
def test_what_a_layer_leaves_is_edited_without_running_the_layer(induction, task, monkeypatch, layers):
    """Behind the last layer only the answers' positions are run, and gradients flow as through the whole pass."""
    studied, rows = as_studied_model(induction, task, task.held_out[:20]), np.array([3, 7, 3])
    scale = torch.tensor(0.5, requires_grad=True)

    def edit(stream, hook):
        assert hook.name == f"blocks.{hook.layer()}.hook_resid_post"
        return stream + scale * stream.flip(0)

    edits = [(f"blocks.{layer}.hook_resid_post", edit) for layer in layers]
    whole = studied.model.run_with_hooks(studied.tokens[rows], fwd_hooks=edits)[:, studied.answer_places]
    (expected,) = torch.autograd.grad(whole[..., 0].sum(), scale)
    studied.whole(edits[0][0])
    starts, run = [], HookedModel.forward

    def counted(self, stream, start_at_layer=None):
        starts.append((start_at_layer, stream.shape[1]))
        return run(self, stream, start_at_layer=start_at_layer)

    monkeypatch.setattr(HookedModel, "forward", counted)
    found = studied.run(edits, rows)
    torch.testing.assert_close(found, whole, rtol=1e-5, atol=1e-5)
    (gradient,) = torch.autograd.grad(found[..., 0].sum(), scale)
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-4)
    n_answers, n_ctx = len(studied.answer_places), studied.tokens.shape[1]
    assert starts == [(2, n_answers) if layers == (1,) else (1, n_ctx)]


def test_an_activation_is_computed_where_it_is_asked_for(noise, task, monkeypatch):
    point, rows, asked = "blocks.0.attn.hook_z", np.array([5, 1, 5]), []
    whole = as_studied_model(noise, task, task.held_out[:40]).activation(point)
    studied, cache = as_studied_model(noise, task, task.held_out[:40]), StudiedModel.cache
    monkeypatch.setattr(
        StudiedModel, "cache", lambda self, points: asked.append(self.n_inputs) or cache(self, points)
    )
    np.testing.assert_allclose(studied.activation(point, rows), whole[rows], atol=1e-5)
    many = np.arange(20)
    np.testing.assert_allclose(studied.activation(point, many), whole[many], atol=1e-5)
    np.testing.assert_allclose(studied.activation(point, rows), whole[rows], atol=1e-5)
    assert asked == [2, 40]
    assert studied.width(point) == whole.shape[-1]
    assert studied.width("blocks.0.hook_attn_out") == studied.activation("blocks.0.hook_attn_out").shape[-1]


def test_a_model_on_its_own_inputs_is_itself(noise, task):
    studied = as_studied_model(noise, task, task.held_out[:20])
    assert studied.on(studied.ids) is studied.first(20) is studied
    assert studied.on(task.held_out[:20]).n_inputs == studied.n_inputs
    assert studied.first(19).n_inputs == 19
