"""Compiled programs as stock checkpoints of GPT-2."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2LMHeadModel, LlamaForCausalLM

from rasplens.compile import compile_program, programs, rasp, stock_checkpoint
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.errors import RaspLensError
from rasplens.model import Transformer, disguise

BOS = {"gpt2": "auto", "llama": True}
"""A Llama counts positions from it."""


def compiled(name, **options):
    entry = CATALOGUE[name]
    chosen = {**dict(entry.options), "causal": True, **options}
    return compile_program(rasp.causal(entry.build()), entry.vocab, entry.max_len, **chosen)


@pytest.fixture(scope="module")
def induction(tmp_path_factory):
    """The program with the model and the tokenizer that transformers loads."""
    folder, model = tmp_path_factory.mktemp("checkpoints") / "induction", compiled("induction")
    model.to_huggingface(folder)
    return model, AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder), folder


def test_it_is_a_stock_model_that_answers_as_the_program_does(induction):
    """Without any of our code."""
    model, stock, tokenizer, _ = induction
    assert type(stock) is GPT2LMHeadModel
    assert stock.config.activation_function == "gelu_new"
    assert tokenizer("word").input_ids[-1] == tokenizer.unk_token_id == stock.config.vocab_size - 1
    answered = 0
    for tokens in (list("abcab"), list("cbacb"), list("aabba")):
        with torch.no_grad():
            logits = stock(tokenizer(" ".join(tokens), return_tensors="pt").input_ids).logits
        given = tokenizer.convert_ids_to_tokens(logits.argmax(-1)[0, model.offset :])
        wanted = model.interpret(tokens)
        answered += sum(value is not None for value in wanted)
        assert [one for one, value in zip(given, wanted, strict=True) if value is not None] == [
            value for value in wanted if value is not None
        ]
    assert answered > 5


def test_the_residual_stream_is_the_compiled_one(induction):
    """Layer norm is undone: the first directions hold what they hold in the compiled model."""
    model, stock, _, _ = induction
    ids = model.encode([list("abcab"), list("cacbb")])
    _, cache = model.transformer.run_with_cache(ids)
    with torch.no_grad():
        states = stock(torch.as_tensor(ids), output_hidden_states=True).hidden_states
    width = model.transformer.config.d_model
    for layer, state in enumerate(states[:-1]):
        stream = cache[f"blocks.{layer}.hook_resid_pre"]
        np.testing.assert_allclose(state[..., :width].numpy(), stream, atol=1e-3)
        assert abs(state.mean(dim=-1)).max() < 1e-3
    assert np.abs(stream).max() > 0.5


def test_the_truth_stands_beside_it(induction):
    model, _, _, folder = induction
    truth = json.loads((folder / stock_checkpoint.TRUTH).read_text())
    assert truth["heads"] == {f"L{layer}H{head}": name for (layer, head), name in model.heads.items()}
    assert set(truth["variables"]) == set(model.variables)
    assert truth["tokens"][: len(model.inputs.vocab)] == list(model.inputs.vocab)
    assert len(truth["edges"]) == model.circuit().number_of_edges()
    rows = truth["variables"]["previous"]["read"]
    assert {int(i) for i in rows} == set(model.variables["previous"].directions.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_every_program_of_the_library_is_equal_on_every_input(name, family, tmp_path):
    found = compiled(name, bos=BOS[family]).to_huggingface(tmp_path / name, family)
    assert found.inputs == found.total
    assert found.answers > 200


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """Induction as transformers loads it."""
    folder, model = tmp_path_factory.mktemp("checkpoints") / "llama", compiled("induction")
    assert model.to_huggingface(folder, "llama").inputs == model.inputs.size
    return model, AutoModelForCausalLM.from_pretrained(folder), folder


def test_a_llama_counts_positions_in_a_layer_in_front(llama):
    """From there on the first directions of the stream are those of the compiled model."""
    model, stock, folder = llama
    assert type(stock) is LlamaForCausalLM
    assert stock.config.num_hidden_layers == model.transformer.config.n_layers + 1
    ids = model.encode([list("abcab"), list("cacbb")])
    _, cache = model.transformer.run_with_cache(ids)
    with torch.no_grad():
        states = stock(torch.as_tensor(ids), output_hidden_states=True).hidden_states
    width = model.transformer.config.d_model
    for layer in range(model.transformer.config.n_layers):
        stream = cache[f"blocks.{layer}.hook_resid_pre"]
        np.testing.assert_allclose(states[layer + 1][..., :width].numpy(), stream, atol=2e-3)
    assert (
        np.abs(states[0][..., :width].numpy() - cache["blocks.0.hook_resid_pre"]).max() > 0.5
    )  # no positions yet
    truth = json.loads((folder / stock_checkpoint.TRUTH).read_text())
    assert truth["heads"] == {f"L{layer + 1}H{head}": name for (layer, head), name in model.heads.items()}
    assert ["L1H0", "L2H0"] in truth["edges"]
    assert "layer 0" in truth["positions"]
    assert truth["variables"]["previous"]["written_at"] == "blocks.1.hook_resid_post"


def test_its_rotary_positions_turn_nothing(llama):
    """The positions that a Llama is told can be any, with the BOS in front: it counts them itself."""
    model, stock, _ = llama
    ids = torch.as_tensor(model.encode([list("abcab"), list("cacbb")]))
    with torch.no_grad():
        plain = stock(ids).logits
        moved = stock(ids, position_ids=torch.arange(ids.shape[1])[None] * 3 + 11).logits
    torch.testing.assert_close(plain, moved, atol=1e-2, rtol=1e-3)


def test_a_llama_of_a_program_without_positions_has_as_many_layers(tmp_path):
    model = compiled("histogram")
    model.to_huggingface(tmp_path / "histogram", "llama")
    stock = AutoModelForCausalLM.from_pretrained(tmp_path / "histogram")
    assert stock.config.num_hidden_layers == model.transformer.config.n_layers
    truth = json.loads((tmp_path / "histogram" / stock_checkpoint.TRUTH).read_text())
    assert "positions" not in truth


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_tokens_that_are_no_words_have_names_of_their_own(family, tmp_path):
    """Once, the tokenizer took the colon in the name of the BOS for one of its own."""
    model = compile_program(rasp.causal(programs.histogram()), [1, "1"], 3, causal=True)
    assert model.has_bos
    assert model.to_huggingface(tmp_path / "it", family).inputs == 14


@pytest.mark.parametrize("max_len", [24, 40])
def test_a_llama_counts_many_positions(max_len, tmp_path):
    """Once, neighbouring shares of the BOS were too close for SiLU to be ReLU."""
    model = compile_program(rasp.causal(programs.induction()), "ab", max_len, causal=True, bos=True)
    assert model.to_huggingface(tmp_path / "it", "llama").answers > 1000


def test_what_is_no_llama_is_refused(tmp_path, unchecked):
    with pytest.raises(RaspLensError, match="bos=True"):
        compiled("pair_balance").to_huggingface(tmp_path / "it", "llama")
    with pytest.raises(RaspLensError, match="family must be one of gpt2, llama; got 'mamba'"):
        compiled("induction").to_huggingface(tmp_path / "it", "mamba")
    assert not (tmp_path / "it").exists()


def test_answers_that_are_numbers_are_tokens(tmp_path):
    count = rasp.numerical(rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)))
    model = compile_program(rasp.causal(count.named("count")), "ab", 4, causal=True)
    assert model.transformer.config.d_vocab_out == 1
    assert model.to_huggingface(tmp_path / "count").answers > 50
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "count")
    stock = AutoModelForCausalLM.from_pretrained(tmp_path / "count")
    given = stock(tokenizer("a b a a", return_tensors="pt").input_ids).logits.argmax(-1)[0, model.offset :]
    assert [float(one) for one in tokenizer.convert_ids_to_tokens(given)] == [1, 1, 2, 3]


def test_where_the_program_has_no_value_nothing_is_compared(tmp_path):
    """Once, an average of what a function does not give there was called a mixture."""
    inverse = numerical_map(lambda token: 10 / token)
    smaller = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.LEQ)
    mean = rasp.causal(rasp.numerical(rasp.Aggregate(smaller, inverse)).named("mean"))
    found = compile_program(mean, [0, 1, 2], 3, causal=True, partial="allow").to_huggingface(tmp_path / "mean")
    assert (found.inputs, found.total) == (39, 39)
    assert 0 < found.undefined < 39
    assert "undefined at some position of" in str(found)


def numerical_map(function):
    return rasp.numerical(rasp.Map(function, rasp.tokens))


@pytest.mark.slow
def test_a_disguise_is_one_as_well(tmp_path):
    twin = disguise(compiled("induction"), seed=1)
    assert twin.to_huggingface(tmp_path / "twin").inputs == twin.inputs.size


def test_what_gpt2_cannot_express_is_refused(tmp_path):
    both_ways = compile_program(programs.histogram(), "ab", 3)
    with pytest.raises(RaspLensError, match=r"only the past.*causal"):
        both_ways.to_huggingface(tmp_path / "it")
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_stays(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RaspLensError, match="not an empty folder"):
        compiled("induction").to_huggingface(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(RaspLensError, match=r"no folder .*nowhere"):
        compiled("induction").to_huggingface(tmp_path / "nowhere" / "it")


@pytest.mark.parametrize(
    ("family", "norm"),
    [("gpt2", "transformer.h.0.ln_1.weight"), ("llama", "model.layers.1.input_layernorm.weight")],
)
def test_answers_that_differ_are_refused_and_nothing_is_written(family, norm, monkeypatch, tmp_path):
    """The negative control: a model with a norm that is off."""
    made = stock_checkpoint._model

    def broken(family, fields, weights, model):
        return made(family, fields, {**weights, norm: 0 * weights[norm]}, model)

    monkeypatch.setattr(stock_checkpoint, "_model", broken)
    with pytest.raises(RaspLensError, match=r"single precision.*'induction'"):
        compiled("induction").to_huggingface(tmp_path / "it", family)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_check_is_refused(tmp_path):
    model = compiled("induction")
    silent = Transformer(model.transformer.config, dict(model.transformer.weights), model.transformer.mask)
    with pytest.raises(RaspLensError, match="no value on any input"):
        replace(model, transformer=silent, inputs=replace(model.inputs, max_len=1)).to_huggingface(tmp_path / "it")
