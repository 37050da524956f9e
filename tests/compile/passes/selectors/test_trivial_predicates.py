from model_sizes import size

from rasplens.compile import compile_program, programs, verify
from rasplens.compile.rasp import Aggregate, Comparison, SelectBest, indices, tokens


def test_a_predicate_that_always_holds_reads_nothing():
    length = programs.length()
    trivial = size(length, ["trivial-predicates", "views"], vocab="abcdef")
    assert trivial.d_model < size(length, ["views"], vocab="abcdef").d_model


def test_a_best_key_stays_a_choice_though_its_predicate_always_holds():
    last = Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, indices), tokens)
    assert verify(compile_program(last, "abc", 4, optimize=["trivial-predicates"])).ok
