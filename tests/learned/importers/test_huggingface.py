"""Folders of Hugging Face's, made here: loaded without a hub, equal to the model itself, and compared."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    PreTrainedTokenizerFast,
)

from rasplens.compare import compare, token_vocabulary
from rasplens.errors import RaspLensError
from rasplens.learned import load_huggingface
from rasplens.learned.importers import huggingface
from rasplens.tasks import compile_for, get_task

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


def test_a_device_that_is_not_there(saved):
    with pytest.raises(RaspLensError, match=r"no device 'nowhere'.*cpu"):
        load_huggingface(saved[1], device="nowhere")
    with pytest.raises(RaspLensError, match="no device 'cuda:99'"):
        load_huggingface(saved[1], device="cuda:99")
    assert load_huggingface(saved[1], device="cpu").cfg.n_layers == 2


@pytest.mark.slow
def test_it_can_be_compared(saved):
    _, folder = saved
    task = get_task("induction", n_letters=8, block=5, asked=2)
    vocabulary = token_vocabulary(task, {letter: i + 3 for i, letter in enumerate(task.vocab)}, prefix=[0])
    result = compare("induction", load_huggingface(folder), task=task, config="quick", vocabulary=vocabulary)
    assert result.verdict.answer == "does not"  # it is untrained


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_stock_checkpoint_of_a_program_implements_it_and_not_its_rival(family, tmp_path):
    """From the weights of a GPT-2 or a Llama alone, with their norms."""
    task = get_task("copy", n_letters=6, block=3, length=8)
    compiled = compile_for(task, "offset")
    compiled.to_huggingface(tmp_path / "offset", family)
    bos = [len(task.vocab)] if compiled.has_bos else []
    vocabulary = token_vocabulary(task, {letter: i for i, letter in enumerate(task.vocab)}, prefix=bos)
    model = load_huggingface(tmp_path / "offset")
    found = {
        program: compare(program, model, task=task, config="quick", vocabulary=vocabulary).verdict.answer
        for program in ("offset", "induction")
    }
    assert found["offset"] == "implements"
    assert found["induction"] == "does not"


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
    with pytest.raises(RaspLensError, match=r"logits.*not finite"):
        load_huggingface(tmp_path)


def test_what_is_no_model(tmp_path, saved):
    with pytest.raises(RaspLensError, match=r"no folder .*none"):
        load_huggingface(tmp_path / "none")
    with pytest.raises(RaspLensError, match=r"no config\.json"):
        load_huggingface(tmp_path)
    config = tmp_path / "config.json"
    deep = "[" * 100_000
    for text, said in (
        ("{", r"config\.json .*JSON"),
        ("", r"config\.json .*JSON"),
        (deep, r"config\.json .*JSON"),
        ("[1]", "JSON object; got list"),
        ("{}", "model_type"),
    ):
        config.write_text(text)
        with pytest.raises(RaspLensError, match=said):
            load_huggingface(tmp_path)
    config.write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(RaspLensError, match="no weights as safetensors"):
        load_huggingface(tmp_path)
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RaspLensError, match="no weights as safetensors"):
        load_huggingface(tmp_path)
    (tmp_path / "elsewhere").write_bytes(b"nothing")
    with pytest.raises(RaspLensError, match="cannot be loaded"):
        load_huggingface(tmp_path)


def gpt2(**options):
    """A small GPT-2 whose attention matters."""
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(**{**GPT2, **options})).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(5 if weight.ndim > 1 else 1)
    return model


GPT2 = {"vocab_size": 20, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2, **TOKENS}


@pytest.fixture
def folder(tmp_path):
    gpt2().save_pretrained(tmp_path)
    return tmp_path


def with_tensors(folder, change):
    """The folder, its weights changed."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def with_config(folder, **changes):
    """The folder, its config changed."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


FIRST, LAST = "transformer.h.0.attn.c_attn.weight", "transformer.h.1.mlp.c_proj.bias"


def remove(*names):
    def change(tensors):
        for name in names:
            del tensors[name]

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (remove(FIRST), f"lack {FIRST}"),
        (remove(LAST), f"lack {LAST}"),
        (remove("transformer.wte.weight"), r"lack lm_head\.weight, transformer\.wte\.weight"),
        (lambda tensors: tensors.update(mine=tensors.pop(FIRST)), f"lack {FIRST}; .*extra.* mine"),
        (lambda tensors: tensors.update({FIRST: tensors[FIRST][:-1]}), r"shape .*\(15, 48\) .*\(16, 48\)"),
        (lambda tensors: [tensors.pop(name) for name in list(tensors) if ".h.1." in name], "lack .* and 9 more"),
    ],
    ids=["first", "last", "tied", "renamed", "shape", "layer"],
)
def test_weights_that_are_not_those_of_the_config_are_refused_by_name(folder, change, said):
    with_tensors(folder, change)
    with pytest.raises(RaspLensError, match=said):
        load_huggingface(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_layer": 3}, r"lack transformer\.h\.2\..*config\.json"),
        ({"n_layer": 1}, r"extra .*transformer\.h\.1\."),
        ({"n_layer": 10**10}, "10,000,000,000 layers"),
        ({"n_layer": -1}, r"config\.json|cannot be loaded"),
        ({"n_layer": "2"}, "cannot be loaded"),
        ({"n_head": "2"}, "cannot be loaded"),
        ({"vocab_size": 10**12}, r"16,000,0[\d,]* numbers; .*\d"),
        ({"n_embd": 10**6}, r"[\d,]{10,} numbers; .*\d"),
        ({"vocab_size": 21}, r"shape .*\(20, 16\) .*\(21, 16\)"),
        ({"tie_word_embeddings": False}, r"lack lm_head\.weight"),
        ({"model_type": "no_such_type"}, "cannot be loaded"),
        ({"model_type": ["gpt2"]}, "cannot be loaded"),
        ({"n_layer": None}, "cannot be loaded"),
    ],
)
def test_configs_that_are_not_those_of_the_weights_are_refused(folder, changes, said):
    with_config(folder, **changes)
    with pytest.raises(RaspLensError, match=said) as refused:
        load_huggingface(folder)
    assert "\n" not in str(refused.value)


def test_tied_weights_untied_ones_and_shards_load(tmp_path):
    for number, options in enumerate(({}, {"tie_word_embeddings": False})):
        model, folder = gpt2(**options), tmp_path / str(number)
        model.save_pretrained(folder, max_shard_size="10KB")
        assert len(list(folder.glob("*.safetensors"))) > 1
        ids = torch.arange(16)[None]
        with torch.no_grad():
            torch.testing.assert_close(load_huggingface(folder)(ids), model(ids).logits, rtol=1e-4, atol=1e-4)
    next(folder.glob("*.safetensors")).unlink()
    with pytest.raises(RaspLensError, match="cannot be loaded"):
        load_huggingface(folder)


def test_pickled_weights_are_not_read(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(RaspLensError, match="no weights as safetensors"):
        load_huggingface(folder)
    save_file({"one": torch.ones(1)}, folder / "other.safetensors")  # which is no model's name
    with pytest.raises(RaspLensError, match="cannot be loaded"):
        load_huggingface(folder)


@pytest.mark.parametrize("options", [{"scale_attn_by_inverse_layer_idx": True}, {"layer_norm_epsilon": 0.5}])
def test_configs_that_a_bridge_knows(tmp_path, options):
    gpt2(**options).save_pretrained(tmp_path)
    assert load_huggingface(tmp_path).cfg.n_layers == 2


def test_a_config_that_a_bridge_ignores_is_refused(tmp_path):
    gpt2(scale_attn_weights=False).save_pretrained(tmp_path)
    with pytest.raises(RaspLensError, match=r"logits .*differ by [\d.e+-]+ .*spread"):
        load_huggingface(tmp_path)


def test_a_bridge_with_one_wrong_weight_is_caught(folder, monkeypatch):
    """The bridge is built around the model itself: what the model gives afterwards would be wrong alike."""
    from transformer_lens.model_bridge import TransformerBridge

    right = TransformerBridge.boot_transformers

    def wrong(*args, hf_model, **options):
        with torch.no_grad():
            hf_model.transformer.h[1].mlp.c_fc.weight[0, 0] += 0.5
        return right(*args, hf_model=hf_model, **options)

    monkeypatch.setattr(TransformerBridge, "boot_transformers", staticmethod(wrong))
    with pytest.raises(RaspLensError, match=r"logits .*differ by"):
        load_huggingface(folder)


def test_a_bridge_that_errs_on_the_last_position_only_is_caught(folder, monkeypatch):
    from transformer_lens.model_bridge import TransformerBridge

    right = TransformerBridge.boot_transformers

    def wrong(*args, hf_model, **options):
        with torch.no_grad():
            hf_model.transformer.wpe.weight[15, 0] += 1
        return right(*args, hf_model=hf_model, **options)

    monkeypatch.setattr(TransformerBridge, "boot_transformers", staticmethod(wrong))
    with pytest.raises(RaspLensError, match=r"logits .*differ by"):
        load_huggingface(folder)


@pytest.mark.parametrize(
    "model",
    [
        lambda: OPTForCausalLM(
            OPTConfig(vocab_size=20, hidden_size=16, ffn_dim=32, num_hidden_layers=1, num_attention_heads=2,
                      max_position_embeddings=16, word_embed_proj_dim=16, do_layer_norm_before=False)
        ),
        lambda: GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=20, attention_bias=False, **SMALL)),
    ],
    ids=["OPT with layer norm behind", "NeoX without bias"],
)  # fmt: skip
def test_what_transformer_lens_cannot_build_is_refused_with_a_reason(tmp_path, model):
    model().save_pretrained(tmp_path)
    with pytest.raises(RaspLensError, match=r"no bridge .* \(\w+Error"):
        load_huggingface(tmp_path)


CODE = """
from pathlib import Path
Path({path!r}).touch()
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
class Mine(GPT2Config): pass
class MyModel(GPT2LMHeadModel): pass
class MyTokenizer(PreTrainedTokenizerFast): pass
"""


@pytest.mark.parametrize("place", ["config.json", "tokenizer_config.json", "custom_generate"])
@pytest.mark.parametrize("model_type", ["gpt2", "mine"])
def test_code_in_a_folder_is_never_run(folder, monkeypatch, place, model_type):
    trace = folder / "it ran"
    (folder / "code.py").write_text(CODE.format(path=str(trace)))
    (folder / "custom_generate").mkdir()
    shutil.copy(folder / "code.py", folder / "custom_generate" / "generate.py")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    names = {"AutoConfig": "code.Mine", "AutoModelForCausalLM": "code.MyModel"}
    if place == "config.json":
        with_config(folder, auto_map=names, model_type=model_type)
    elif place == "tokenizer_config.json":
        (folder / place).write_text(json.dumps({"auto_map": {"AutoTokenizer": ["code.MyTokenizer", None]}}))
    if place == "custom_generate":
        load_huggingface(folder)
    else:
        with pytest.raises(RaspLensError, match=rf"{place} .*auto_map"):
            load_huggingface(folder)
    assert not trace.exists()


def test_an_adapter_of_another_model_is_refused(folder):
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "gpt2"}')
    with pytest.raises(RaspLensError, match=r"adapter_config\.json"):
        load_huggingface(folder)


def test_nothing_is_asked_of_the_network(folder, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.chdir(folder.parent)
    huggingface._tokenizer(folder / "none", 20).save_pretrained(folder)
    bridge = load_huggingface(folder.name)
    assert isinstance(bridge.tokenizer, PreTrainedTokenizerFast)


def test_parity_is_of_every_input_and_of_numbers():
    own = [torch.tensor([[[1.0, -1.0]]]), torch.tensor([[[1001.0, 999.0]]])]
    huggingface.check_parity("it", [own[0] + 5e-5, own[1]], own)
    for wrong in (own[0] + 5e-4, own[0] * torch.nan):
        for order in (1, -1):
            with pytest.raises(RaspLensError, match=r"bridge of it .*logits.* spread; 0\.0001"):
                huggingface.check_parity("it", [wrong, own[1]][::order], own[::order])
    with pytest.raises(RaspLensError, match=r"logits .*differ by"):  # of the size of logits it is little
        huggingface.check_parity("it", [own[0], own[1] + 5e-3], own)
