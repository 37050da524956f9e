"""Agreement: compiled equals interpreter on every input, for a table of programs; and what is refused."""

import itertools
import math
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch
from rasp_examples import EQUAL, EVERYTHING, PREVIOUS

from rasplens.compile import CausalWarning, CompileError, UndefinedValue, compile_program, rasp, run, verify
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectorWidth,
    SOp,
    Where,
    indices,
    tokens,
)
from rasplens.compile.rasp.interpreter import expressions
from rasplens.model import HookedModel


def same(expected, got) -> bool:
    """Exactly the same, but for the rounding of fractions."""
    if isinstance(expected, float) and isinstance(got, float):
        return math.isclose(expected, got, rel_tol=1e-9)
    return type(expected) is type(got) and expected == got


def test_compiled_equals_interpreter_on_every_input(case, compiled):
    options = {name: value for name, value in case.options.items() if name in ("causal", "mask")}
    for length in range(1, case.max_len + 1):
        sequences = list(itertools.product(case.vocab, repeat=length))
        for sequence, got in zip(sequences, compiled.run_batch(sequences), strict=True):
            expected = run(case.program, sequence, **options)
            assert all(map(same, expected, got)), (sequence, expected, got)


@pytest.mark.parametrize(
    "case", ["reverse", "select best with ties", "where of numbers", "silent rows with a default"], indirect=True
)
def test_the_torch_model_computes_the_same_logits(compiled):
    """To 1e-10 in float64; in float32, where steep scores amplify its rounding, to the same answers."""
    sequence = compiled.inputs.vocab[:1] * compiled.inputs.max_len
    ids = compiled.encode([sequence])
    double = compiled.transformer.astype("float64")
    with torch.no_grad():
        single_logits = HookedModel(compiled.transformer)(torch.tensor(ids)).numpy()
        double_logits = HookedModel(double)(torch.tensor(ids)).numpy()
    np.testing.assert_allclose(double_logits, double(ids), rtol=0, atol=1e-10)
    decode = compiled.variables[compiled.output].decode
    np.testing.assert_array_equal(
        decode(single_logits[:, compiled.offset :]), decode(double_logits[:, compiled.offset :])
    )


def test_every_variable_reads_as_the_interpreter_says(case, compiled):
    """The anatomy: not only the answer but each named s-op is where it is said to be."""
    names = Counter(expr.name for expr in expressions(case.program))
    options = {name: value for name, value in case.options.items() if name in ("causal", "mask")}
    sequence = (compiled.inputs.vocab * compiled.inputs.max_len)[: compiled.inputs.max_len]
    codes = compiled.codes(np.array([compiled.inputs.ids(sequence)]))
    for expr in expressions(case.program):
        if isinstance(expr, SOp) and names[expr.name] == 1 and expr.name in compiled.variables:
            values = (*compiled.variables[expr.name].values, None)
            got = [values[code] for code in codes[expr.name][0]]
            assert all(map(same, run(expr, sequence, **options), got)), expr.name


def test_the_bos_is_there_only_where_it_is_needed():
    def has_bos(program, **options):
        return compile_program(program, ["a", "b"], 3, **options).has_bos

    assert has_bos(SelectorWidth(EQUAL))
    assert has_bos(Aggregate(PREVIOUS, tokens))
    assert not has_bos(Aggregate(EQUAL, tokens))
    assert not has_bos(Aggregate(Select(indices, indices, lambda k, q: k == max(q - 1, 0)), tokens))
    assert has_bos(Aggregate(EQUAL, tokens), bos=True)
    strictly_left = np.tri(3, k=-1, dtype=bool)
    assert not has_bos(Aggregate(PREVIOUS, tokens), mask=strictly_left)
    assert has_bos(Aggregate(PREVIOUS, tokens, default="a"), mask=strictly_left)


def test_a_bos_that_is_needed_cannot_be_forbidden():
    with pytest.raises(CompileError, match=r"'hist \(attention on BOS\)'.*bos=\"auto\""):
        compile_program(SelectorWidth(EQUAL).named("hist"), ["a"], 3, bos=False)
    with pytest.raises(CompileError, match=r"'aggregate.*bos=\"auto\""):
        compile_program(Aggregate(PREVIOUS, tokens), ["a"], 3, bos=False)
    with pytest.raises(ValueError, match=r"bos.*auto.*'yes'"):
        compile_program(tokens, ["a"], 3, bos="yes")


def test_a_program_without_a_value_on_some_input_is_refused_with_a_smallest_one():
    everything = Aggregate(EVERYTHING, tokens).named("all")
    with pytest.raises(CompileError, match=r"'all' is undefined at position 0.*\['a', 'b'\].*mean") as caught:
        compile_program(everything, ["a", "b"], 5)
    assert caught.value.node is everything
    with pytest.raises(CompileError, match=r"undefined at position.*ZeroDivisionError on 0"):
        compile_program(Map(lambda t: 1 / t, tokens), [0, 1], 3)
    with pytest.raises(CompileError, match=r"undefined at position 0.*\[0, 1\].*mean"):
        compile_program(Aggregate(EVERYTHING, Map(lambda t: t or None, tokens)), [0, 1], 3)


def test_beyond_enumeration_inputs_are_sampled():
    with pytest.raises(CompileError, match="undefined at position"):
        compile_program(Aggregate(EVERYTHING, Map(str, tokens)), range(50), 20)


@pytest.mark.parametrize("optimize", [True, False])
def test_the_answer_to_a_mixture_is_a_refusal_not_a_guess(optimize):
    """At every length: 4 in 5 were once near enough to all of them."""
    everything = Aggregate(EVERYTHING, tokens).named("all")
    compiled = compile_program(everything, ["a", "b"], 5, partial="allow", optimize=optimize)
    for length in range(1, 6):
        for sequence in itertools.product("ab", repeat=length):
            if len(set(sequence)) == 1:
                assert compiled(sequence) == everything(sequence)
                continue
            with pytest.raises(UndefinedValue, match=r"'all'.*mixture"):
                compiled(sequence)


def test_mixtures_on_the_way_are_noticed_too():
    is_letter = Map(lambda t: t in "ab", Aggregate(EVERYTHING, tokens).named("all")).named("letter")
    compiled = compile_program(is_letter, ["a", "b"], 2, partial="allow", optimize=False)
    with pytest.raises(UndefinedValue, match=r"'all'.*mixture"):
        compiled(["a", "b"])
    assert compiled(["a", "b"], check=False) == [True, True]


def test_an_average_of_numbers_held_as_classes_is_an_average():
    """0.2 where four zeros and a one are averaged; the answer was once 0, the commonest."""
    average = Aggregate(EVERYTHING, tokens)
    compiled = compile_program(average, [0, 1], 5)
    assert compiled([0, 0, 0, 0, 1]) == average([0, 0, 0, 0, 1]) == [0.2] * 5
    assert verify(compiled).ok
    assert verify(compile_program(average, [True, 2], 2)).ok


def test_length_is_refused_where_not_all_of_it_is_seen():
    with pytest.raises(CompileError, match=r"`length`.*SelectorWidth"):
        compile_program(rasp.length, ["a"], 3, causal=True)


def test_what_causality_changes_is_shown():
    opposite = SelectorWidth(EVERYTHING) - 1 - indices
    reverse = Aggregate(Select(indices, opposite, Comparison.EQ), tokens).named("reverse")
    said = r"\['a', 'b'\].*\['b', 'a'\].*\['a', 'a'\]"
    with pytest.warns(CausalWarning, match=f"'reverse'.*{said}"):
        compile_program(reverse, ["a", "b"], 3, causal=True)
    compile_program(rasp.causal(reverse), ["a", "b"], 3, causal=True)
    compile_program(Aggregate(PREVIOUS, tokens), ["a", "b"], 3, causal=True)


def test_options_are_checked():
    with pytest.raises(ValueError, match=r'partial.*"forbid".*"allow".*True'):
        compile_program(tokens, ["a"], 2, partial=True)
    with pytest.raises(ValueError, match=r"'fast'.*value-pruning, cse, "):
        compile_program(tokens, ["a"], 2, optimize=["fast"])


def test_compiling_and_importing_needs_neither_torch_nor_jax():
    script = (
        "import sys, rasplens.compile as c; from rasplens.compile import rasp;"
        "m = c.compile_program(rasp.tokens + 1, [1, 2], 3); assert m([1]) == [2];"
        "heavy = {'torch', 'jax', 'pandas', 'plotly', 'transformer_lens', 'scipy', 'sklearn'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


PRINT_WEIGHTS = """
import hashlib
from rasplens.compile import compile_program, programs
for program, vocab in ((programs.successor(3), {0, 1, 2, "BOS", "MID"}), (programs.induction(), {"a", "b"})):
    model = compile_program(program, vocab, 8, causal=True).transformer
    print(hashlib.sha256(b"".join(array.tobytes() for array in model.weights.values())).hexdigest())
"""


def test_the_same_program_gives_the_same_bytes_under_any_hash_seed():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PRINT_WEIGHTS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(outputs) == 1


def test_shared_expressions_are_visited_once():
    calls = []
    shared = Map(lambda t: calls.append(t) or t, tokens)
    for _ in range(30):
        shared = Where(shared == 0, shared, shared)
    compiled = compile_program(shared, [0, 1], 2)
    assert calls == [0, 0, 1, 1]  # twice each, to see that it is deterministic
    assert len(compiled.variables) == 62


@pytest.mark.parametrize("bos", [0, 1, "yes", None])
def test_bos_is_a_boolean_or_auto(bos):
    """0 once passed for False, and then was not: the model lost the BOS that the program needs."""
    with pytest.raises(ValueError, match=f"bos.*auto.*{bos!r}"):
        compile_program(Aggregate(PREVIOUS, tokens), ["a", "b"], 2, bos=bos)


@pytest.mark.parametrize("optimize", [True, False])
def test_a_negation_that_only_undefined_queries_pass_selects_for_them(optimize):
    """Found by random programs: the query was read by its values, of which none made a difference."""
    query = Map(lambda t: {"a": "a", "b": None}[t], tokens)
    everywhere_but = ~Select(tokens, query, Comparison.TRUE)
    program = Map(lambda width: width, SelectorWidth(everywhere_but))
    assert program(["a", "b"]) == [0, 2]
    assert verify(compile_program(program, ["a", "b"], 3, optimize=optimize)).ok


def test_padding_changes_no_answer(case):
    """All lengths in one batch, for every program that is causal or sees everything."""
    if "mask" in case.options:
        with pytest.raises(ValueError, match=r"mask.*padding"):
            compile_program(case.program, case.vocab, case.max_len, pad=True, **case.options)
        return
    program = rasp.causal(case.program)
    compiled = compile_program(program, case.vocab, case.max_len, pad=True, **case.options)
    sequences = list(itertools.islice(compiled.inputs, 50)) + list(compiled.inputs)[-50:]
    logits = compiled.transformer(compiled.encode(sequences))[:, compiled.offset :]
    output = compiled.variables[compiled.output]
    values = (*output.values, None)
    for sequence, row, alone in zip(sequences, logits, compiled.run_batch(sequences), strict=True):
        codes = output.decode(row[: len(sequence)], compiled.tolerance(output))
        assert [values[code] for code in codes] == alone


def test_any_other_filler_does_change_answers():
    """The negative control: a token of the vocabulary in the place of padding is counted."""
    compiled = compile_program(SelectorWidth(EQUAL), ["a", "b"], 4, pad=True)
    padded, filled = compiled.encode([["a"], ["a", "a", "a"]]), compiled.encode([["a", "a", "a"]] * 2)
    width = compiled.variables[compiled.output]
    assert width.values[width.decode(compiled.transformer(padded)[:, compiled.offset :])[0, 0]] == 1
    assert width.values[width.decode(compiled.transformer(filled)[:, compiled.offset :])[0, 0]] == 3


def test_padding_sets_no_neuron_off():
    """The position of padding alone once fired the neurons of pairs, for every token at once."""
    beside = Select(tokens, tokens, Comparison.EQ) | Select(indices, indices, Comparison.GT)
    for optimize in (True, False):
        compiled = compile_program(SelectorWidth(beside), ["a", "b", "c"], 3, pad=True, optimize=optimize)
        width = compiled.variables[compiled.output]
        codes = width.decode(
            compiled.transformer(compiled.encode([["a"], ["a", "b", "c"]]))[:, compiled.offset :][:1, :1]
        )
        assert [width.values[code] for code in codes[0]] == [1]


@pytest.mark.parametrize("default", ["z", 2])
def test_defaults_stand_where_nothing_is_seen_at_all(default):
    """Found by random programs with random masks: the default went where the selector was never empty."""
    blind = np.zeros((1, 1), dtype=bool)
    program = Aggregate(Select(tokens, rasp.numerical(tokens), Comparison.EQ), tokens, default=default)
    assert compile_program(program, [1, 2], 1, mask=blind)([1]) == run(program, [1], mask=blind) == [default]


def test_a_function_that_raises_is_refused_where_it_does():
    inverse = compile_program(Map(lambda t: 1 / t, tokens), [0, 1], 2, partial="allow")
    assert inverse([1, 1]) == [1.0, 1.0]
    with pytest.raises(UndefinedValue, match=r"no value on \[1, 0\]"):
        inverse([1, 0])


@pytest.mark.parametrize("constant", [rasp.ConstantSOp([1, 2]), SelectorWidth(rasp.ConstantSelector([[True]]))])
def test_constants_of_one_length_are_refused_for_others(constant):
    with pytest.raises(CompileError, match=r"length \d.*1 to 2.*check_length"):
        compile_program(constant, ["a"], 2)


def test_a_default_keeps_its_type_and_is_a_value():
    program = Aggregate(PREVIOUS, rasp.numerical(indices), default=True)
    assert compile_program(program, ["a"], 2)(["a", "a"])[0] is True
    with pytest.raises(TypeError, match=r"`default` of Aggregate.*list"):
        Aggregate(PREVIOUS, tokens, default=[1])


@pytest.mark.parametrize("default", [float("nan"), (1, float("nan"))])
def test_a_default_is_no_nan(default):
    """Once, a model with such a default was saved and could not be loaded."""
    with pytest.raises(ValueError, match=r"`default` of Aggregate.*nan"):
        Aggregate(PREVIOUS, tokens, default=default)


def test_scores_that_are_equal_are_one_whatever_their_type():
    best = rasp.SelectBest(tokens, tokens, Comparison.TRUE, Map(lambda t: (t,), tokens))
    assert verify(compile_program(SelectorWidth(best), [True, 1], 2)).ok


def test_averages_of_classes_warn_of_causality_too():
    with pytest.warns(CausalWarning, match=r"'aggregate'.*causal"):
        compile_program(Aggregate(EVERYTHING, indices), ["a", "b"], 2, causal=True)


def test_without_a_bos_no_pass_may_need_one():
    choice = Where(
        tokens == "a",
        Aggregate(Select(indices, indices, Comparison.EQ), tokens),
        Aggregate(Select(indices, indices, lambda key, query: key == 0), tokens),
    )
    assert not compile_program(choice, ["a", "b"], 3, bos=False).has_bos


def test_tokens_may_be_numpys():
    assert compile_program(tokens, np.arange(2), 2)([0, 1]) == [0, 1]


@pytest.mark.parametrize("optimize", [True, False])
def test_padding_is_not_looked_at_where_its_place_is_selected(optimize):
    """Padding has a position too: the one behind the sequence, which the default is to stand in for."""
    behind = Aggregate(Select(indices, indices, lambda key, query: key == query + 1), tokens, default="-")
    compiled = compile_program(behind, ["a", "b"], 4, pad=True, optimize=optimize)
    output = compiled.variables[compiled.output]
    codes = output.decode(
        compiled.transformer(compiled.encode([["a", "b"], ["a", "b", "a", "b"]]))[:, compiled.offset :][0, :2]
    )
    assert [output.values[code] for code in codes] == compiled.interpret(["a", "b"]) == ["b", "-"]


@pytest.mark.parametrize("optimize", [True, False])
def test_a_negation_selects_undefined_keys_where_the_query_matters_too(optimize):
    """A key that is undefined equals no query, so that all of them select it."""
    shifted = Aggregate(PREVIOUS, tokens)
    others = SelectorWidth(~Select(shifted, tokens, Comparison.EQ))
    compiled = compile_program(others, ["a", "b"], 4, optimize=optimize)
    assert verify(compiled).ok
    assert compiled(["a", "a"]) == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("ab", "3"), {}, "max_len.*whole number.*'3'"),
        (("ab", 2.0), {}, r"max_len.*whole number.*2\.0"),
        (("ab", 2), {"optimize": 3}, "optimize.*passes.*3"),
        (([float("nan"), 0], 2), {}, "token.*bool.*got nan"),
        (([b"a"], 2), {}, "token.*bool.*b'a'"),
        (([1j], 2), {}, "token.*bool.*1j"),
        (([[1]], 2), {}, r"token.*bool.*\[1\]"),
    ],
)
def test_wrong_types_get_a_line(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        compile_program(tokens, *arguments, **options)


def test_numpy_scalars_are_taken_as_what_they_are():
    compiled = compile_program(tokens + indices, np.arange(3), np.int64(2))
    assert compiled([np.int64(2), np.int64(1)]) == [2, 2]
    assert compiled.run_batch([]) == []
    with pytest.raises(ValueError, match=r"\[1\] at position 0.*vocabulary"):
        compiled([[1]])
    with pytest.raises(ValueError, match="no sequence"):
        compiled.encode([])


@pytest.mark.parametrize("optimize", [True, False])
def test_what_is_undefined_stays_so_in_functions_of_many_pairs(optimize):
    """Of many pairs, those that occur are found by running the inputs; undefined ones are kept as well."""
    pair = rasp.SequenceMap(lambda x, y: (x + y) % 2, Aggregate(PREVIOUS, tokens), tokens)
    for program in (rasp.numerical(pair), SelectorWidth(rasp.Select(pair, pair, rasp.Comparison.EQ))):
        assert verify(compile_program(program, list(range(100)), 2, optimize=optimize)).ok
    mixed = Aggregate(EVERYTHING, rasp.numerical(pair))
    with pytest.raises(CompileError, match="None"):
        compile_program(mixed, list(range(120)), 2, optimize=optimize)


def test_a_default_that_no_input_of_a_domain_comes_to_is_pruned():
    mask = np.array([[True, False], [False, False]])
    program = Aggregate(EVERYTHING, tokens, "none")
    for domain in (["a", "b"], ["a", "ab"], None):
        compiled = compile_program(program, ["a", "b"], 2, mask=mask, domain=domain)
        assert verify(compiled).ok
        assert compiled("a") == ["a"]
