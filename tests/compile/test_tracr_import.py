"""Imports of what Tracr makes, on stand-ins of the same shape: Tracr itself need not be installed."""

import itertools
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rasplens.compile import compile_program, from_tracr, from_tracr_program, programs, rasp, run
from rasplens.compile.rasp import Comparison, numerical, tokens


def assembled(compiled, **changes):
    """A compiled model of ours as Tracr would hand it over: its parameter names, one matrix for all heads."""
    model, config = compiled.transformer, compiled.transformer.config
    weights = model.weights
    params: dict[str, dict[str, np.ndarray]] = {
        "token_embed": {"embeddings": model.W_E},
        "pos_embed": {"embeddings": weights.get("pos_embed.W_pos", np.zeros((config.n_ctx, config.d_model)))},
    }
    scale = np.sqrt(config.d_head)  # Tracr's attention divides by it
    for layer in range(config.n_layers):
        name = f"transformer/layer_{layer}"
        for letter, part in (("Q", "query"), ("K", "key"), ("V", "value")):
            flat = np.concatenate(weights[f"blocks.{layer}.attn.W_{letter}"], axis=1)
            factor = scale if letter == "Q" else 1
            params[f"{name}/attn/{part}"] = {"w": factor * flat, "b": np.zeros(flat.shape[1])}
        flat = np.concatenate(weights[f"blocks.{layer}.attn.W_O"], axis=0)
        params[f"{name}/attn/linear"] = {"w": flat, "b": np.zeros(config.d_model)}
        w_in = weights.get(f"blocks.{layer}.mlp.W_in", np.zeros((config.d_model, 1)))
        params[f"{name}/mlp/linear_1"] = {"w": w_in, "b": np.zeros(w_in.shape[1])}
        w_out = weights.get(f"blocks.{layer}.mlp.W_out", np.zeros((1, config.d_model)))
        params[f"{name}/mlp/linear_2"] = {"w": w_out, "b": np.zeros(config.d_model)}
    output = compiled.variables[compiled.output]
    is_number = output.encoding is rasp.Encoding.NUMERICAL
    facts = {
        "params": params,
        "residual_labels": labels(compiled),
        "model_config": SimpleNamespace(
            num_heads=config.n_heads,
            num_layers=config.n_layers,
            key_size=config.d_head,
            mlp_hidden_size=max(1, config.d_mlp),
            causal=False,
            layer_norm=False,
        ),
        "input_encoder": SimpleNamespace(
            encoding_map={token: i for i, token in enumerate((*compiled.inputs.vocab, "BOS"))}, bos_token="BOS"
        ),
        "output_encoder": SimpleNamespace(
            encoding_map={} if is_number else {value: i for i, value in enumerate(output.values)}
        ),
    }
    return SimpleNamespace(**facts | changes)


def labels(compiled) -> list[str]:
    found = ["one"] * compiled.transformer.config.d_model
    for name, variable in compiled.variables.items():
        if variable.is_view:
            continue
        if variable.encoding is rasp.Encoding.NUMERICAL:
            found[variable.directions[0]] = name
            continue
        for value, direction in zip(variable.values, variable.directions, strict=True):
            found[direction] = f"{name}:{value}"
    return found


@pytest.mark.parametrize("program", [programs.reverse, programs.histogram, programs.sort])
def test_an_assembled_model_answers_as_it_did(program):
    compiled = compile_program(program(), [1, 2, 3], 4, bos=True, optimize=False)
    imported = from_tracr(assembled(compiled))
    for length in range(1, 5):
        for sequence in itertools.product([1, 2, 3], repeat=length):
            assert imported(sequence) == compiled(sequence)


def test_numerical_outputs_are_numbers():
    compiled = compile_program(programs.frac_prevs(tokens == "x"), ["a", "x"], 4, bos=True, optimize=False)
    imported = from_tracr(assembled(compiled))
    assert imported.output_values is None
    assert imported(["a", "x", "x"]) == pytest.approx([0, 1 / 2, 2 / 3], abs=1e-5)
    assert all(type(value) is float for value in imported(["a"]))


def test_the_output_can_be_named_and_must_be_known():
    compiled = compile_program(programs.reverse(), ["a", "b"], 3, bos=True, optimize=False)
    assert from_tracr(assembled(compiled), output="tokens")(["a", "b", "b"]) == ["a", "b", "b"]
    with pytest.raises(ValueError, match=r"'mirror'.*tokens, indices"):
        from_tracr(assembled(compiled), output="mirror")
    twice = [label.replace("reverse", "x") for label in labels(compiled)]
    twice[twice.index("indices:0")], twice[twice.index("indices:1")] = "y:a", "y:b"
    model = assembled(compiled, residual_labels=twice)
    for layer in range(compiled.transformer.config.n_layers):
        for part in ("attn/linear", "mlp/linear_2"):
            weights = model.params[f"transformer/layer_{layer}/{part}"]
            weights["w"] = np.zeros_like(weights["w"])
    with pytest.raises(ValueError, match=r"'tokens', 'y', 'x'.*`output`"):
        from_tracr(model)


def test_what_does_not_fit_is_refused():
    compiled = compile_program(programs.reverse(), ["a", "b"], 3, bos=True, optimize=False)
    imported = from_tracr(assembled(compiled))
    with pytest.raises(ValueError, match=r"'z'.*vocabulary"):
        imported(["z"])
    with pytest.raises(ValueError, match=r"padding.*\[1, 2\]"):
        imported.encode([["a"], ["a", "b"]])
    model = assembled(compiled)
    model.model_config.layer_norm = True
    with pytest.raises(ValueError, match="layer norm"):
        from_tracr(model)


# Stand-ins for Tracr's expressions: the same class names and attributes.


class Encoding(Enum):
    CATEGORICAL = "categorical"
    NUMERICAL = "numerical"


def upstream(name: str, *fields: str, **defaults: Any) -> type:
    """A class of Tracr's by its name and attributes."""
    values = dict.fromkeys(fields) | defaults
    namespace = {"__annotations__": dict.fromkeys((*values, "annotations"), Any), **values}
    namespace["annotations"] = field(default_factory=dict)
    return dataclass(eq=False)(type(name, (), namespace))


TokensType, IndicesType, LengthType = (upstream(name) for name in ("TokensType", "IndicesType", "LengthType"))
Map, SequenceMap = upstream("Map", "f", "inner"), upstream("SequenceMap", "f", "fst", "snd")
LinearSequenceMap = upstream("LinearSequenceMap", "fst", "snd", "fst_fac", "snd_fac")
Select, SelectorWidth = upstream("Select", "keys", "queries", "predicate"), upstream("SelectorWidth", "selector")
SelectorAnd, SelectorNot = upstream("SelectorAnd", "fst", "snd"), upstream("SelectorNot", "inner")
Aggregate, Full = upstream("Aggregate", "selector", "sop", default=None), upstream("Full", "fill")
TheirComparison = Enum("Comparison", ["EQ", "LT", "TRUE"])  # type: ignore[misc]

THEIR_TOKENS = TokensType(annotations={"name": "tokens"})
THEIR_INDICES = IndicesType(annotations={"name": "indices"})


def test_a_program_of_tracrs_means_the_same():
    same = Select(THEIR_TOKENS, THEIR_TOKENS, TheirComparison.EQ)
    before = Select(THEIR_INDICES, THEIR_INDICES, TheirComparison.LT)
    count = SelectorWidth(SelectorAnd(same, SelectorNot(before)), annotations={"name": "count"})
    converted = from_tracr_program(SequenceMap(lambda x, y: (x, y), count, Full("z")))
    equal = rasp.Select(tokens, tokens, Comparison.EQ)
    left = rasp.Select(rasp.indices, rasp.indices, Comparison.LT)
    expected = rasp.Map(lambda n: (n, "z"), rasp.SelectorWidth(equal & ~left))
    assert converted(["a", "b", "a"]) == expected(["a", "b", "a"])
    assert [child.name for child in converted.children] == ["count", "full"]


def test_encodings_and_shared_expressions_are_kept():
    is_x = Map(lambda t: t == "x", THEIR_TOKENS, annotations={"encoding": Encoding.NUMERICAL, "name": "is_x"})
    so_far = Select(THEIR_INDICES, THEIR_INDICES, TheirComparison.LT)
    mean = Aggregate(so_far, is_x, 0, annotations={"encoding": Encoding.NUMERICAL})
    converted = from_tracr_program(LinearSequenceMap(mean, mean, 1, 1))
    assert converted.fst is converted.snd
    assert rasp.is_numerical(converted.fst)
    ours = numerical(rasp.Aggregate(converted.fst.selector, converted.fst.sop, 0))
    assert run(converted.fst, ["x", "a", "x"]) == run(ours, ["x", "a", "x"])


def test_primitives_are_ours():
    assert from_tracr_program(THEIR_TOKENS) is tokens
    assert from_tracr_program(LengthType()) is rasp.length
    assert rasp.is_numerical(from_tracr_program(TokensType(annotations={"encoding": Encoding.NUMERICAL})))


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match=r"42.*Tracr's RASP"):
        from_tracr_program(42)
