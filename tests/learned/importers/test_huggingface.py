"""Folders of Hugging Face's, made here: loaded without a hub, equal to the model itself, and compared."""

import json

import numpy as np
import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

from rasplens.compare import compare, token_vocabulary
from rasplens.errors import RaspLensError
from rasplens.learned import load_huggingface
from rasplens.tasks import get_task

TOKENS = {"bos_token_id": None, "eos_token_id": None}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, **TOKENS}
MADE = {
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=20, n_positions=32, n_embd=32, n_layer=2, n_head=4, **TOKENS)
    ),
    "gpt_neox": lambda: GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=20, max_position_embeddings=32, **SMALL)),
    "llama": lambda: LlamaForCausalLM(
        LlamaConfig(vocab_size=20, max_position_embeddings=32, num_key_value_heads=4, **SMALL)
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=MADE)
def saved(request, tmp_path_factory):
    torch.manual_seed(0)
    model = MADE[request.param]().eval()
    folder = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(folder)
    return model, folder


def test_logits_are_those_of_the_model(saved):
    model, folder = saved
    bridge = load_huggingface(folder)
    ids = torch.as_tensor(np.random.default_rng(1).integers(20, size=(4, 12)))
    with torch.no_grad():
        torch.testing.assert_close(bridge(ids), model(ids).logits, rtol=1e-4, atol=1e-4)
        _, cache = bridge.run_with_cache(ids)
    assert cache["blocks.1.attn.hook_pattern"].shape == (4, 4, 12, 12)


def test_it_can_be_compared(saved):
    _, folder = saved
    task = get_task("induction", n_letters=8, block=5, asked=2)
    vocabulary = token_vocabulary(task, {letter: i + 3 for i, letter in enumerate(task.vocab)}, prefix=[0])
    result = compare("induction", load_huggingface(folder), task=task, config="quick", vocabulary=vocabulary)
    assert result.verdict.answer == "does not"  # it is untrained


def test_short_contexts_and_half_precision(tmp_path):
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=9, n_positions=5, n_embd=8, n_layer=1, n_head=2, **TOKENS)
    ).eval()
    for dtype in (torch.bfloat16, torch.float16):
        model.to(dtype).save_pretrained(tmp_path)
        bridge = load_huggingface(tmp_path)
        assert {parameter.dtype for parameter in bridge.parameters()} == {torch.float32}
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    with torch.no_grad():
        torch.testing.assert_close(bridge(ids), model.float()(ids).logits, rtol=1e-4, atol=1e-4)


def test_weights_that_are_no_numbers(tmp_path):
    model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_positions=8, n_embd=8, n_layer=1, n_head=2, **TOKENS))
    with torch.no_grad():
        model.transformer.wpe.weight[0, 0] = float("nan")
    model.save_pretrained(tmp_path)
    with pytest.raises(RaspLensError, match="not finite"):
        load_huggingface(tmp_path)


def test_what_is_no_model(tmp_path, saved):
    with pytest.raises(RaspLensError, match="There is no folder"):
        load_huggingface(tmp_path / "none")
    with pytest.raises(RaspLensError, match=r"has no config\.json"):
        load_huggingface(tmp_path)
    config = tmp_path / "config.json"
    for text, said in (("{", "holds no JSON"), ("{}", "does not say its model_type")):
        config.write_text(text)
        with pytest.raises(RaspLensError, match=said):
            load_huggingface(tmp_path)
    config.write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(RaspLensError, match="no weights as safetensors"):
        load_huggingface(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(RaspLensError, match="cannot be loaded"):
        load_huggingface(tmp_path)
