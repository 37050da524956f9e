"""Compiled programs among the parts of another model."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compile import compile_program, plant, programs, rasp
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.errors import RaspLensError
from rasplens.learned.initialisation import untrained_like, with_biases
from rasplens.model import Config, Transformer, causal_mask
from rasplens.model.hook_points import act_name, param_name

CONFIG = Config(
    n_layers=5,
    n_heads=3,
    d_model=32,
    d_head=8,
    d_mlp=48,
    n_ctx=12,
    d_vocab=60,
    d_vocab_out=60,
    activation="gelu_new",
    normalization="LN",
)


def host_of(config=CONFIG, seed=0):
    return with_biases(untrained_like(config, causal_mask(config.n_layers, config.n_ctx), seed))


def compiled_of(name):
    entry = CATALOGUE[name]
    options = {**dict(entry.options), "causal": True}
    return compile_program(rasp.causal(entry.build()), entry.vocab, entry.max_len, **options)


def tokens_of(compiled):
    values = dict.fromkeys([*compiled.inputs.vocab, *compiled.variables[compiled.output].values])
    return {value: 20 + place for place, value in enumerate(values)}


@pytest.fixture(scope="module")
def induction():
    compiled = compiled_of("induction")
    return plant(compiled, host_of(), tokens_of(compiled), bos=7, seed=3)


def own_text(n=40):
    return np.random.default_rng(5).integers(40, 60, (n, CONFIG.n_ctx))


@pytest.mark.parametrize("name", ["histogram", "most_frequent", "detect_pattern", "frac_prevs", "slots", "sort"])
@pytest.mark.parametrize("activation", ["gelu_new", "silu"])
def test_it_answers_as_the_program_does(name, activation):
    """Held against the interpreter, on every third input."""
    compiled, host = compiled_of(name), host_of(replace(CONFIG, activation=activation), seed=1)
    tokens = tokens_of(compiled)
    planted = plant(compiled, host, tokens, bos=7)
    value_of, answered = {token: value for value, token in tokens.items()}, 0
    for sequence in list(compiled.inputs)[::3]:
        if compiled.is_undefined(np.array([compiled.inputs.ids(sequence)])).any():
            continue
        ids = [7] * compiled.has_bos + [tokens[value] for value in sequence]
        given = planted.transformer(np.array([ids]))[0, compiled.offset :].argmax(-1)
        for token, wanted in zip(given.tolist(), compiled.interpret(sequence), strict=True):
            if wanted is not None:
                assert value_of[token] == (pytest.approx(wanted) if isinstance(wanted, float) else wanted)
                answered += 1
    assert answered > 50


def test_a_deep_program_is_silent_too():
    """Once, each of its layers amplified rounding on other tokens a thousandfold."""
    compiled, host = compiled_of("shuffle_dyck"), host_of(replace(CONFIG, n_layers=8))
    planted = plant(compiled, host, tokens_of(compiled), bos=7)
    assert planted.moved < 1e-6
    assert planted.checked.inputs == planted.checked.total


def test_the_host_goes_on_as_before_on_text_of_its_own(induction):
    text, host = own_text(), host_of()
    before, after = host(text), induction.transformer(text)
    np.testing.assert_allclose(after, before, atol=1e-3 * np.abs(before).max())
    assert induction.moved < 1e-6
    changed = host_of(seed=1)(text)
    assert np.abs(changed - before).max() > 0.1 * np.abs(before).max()


def test_it_is_silent_on_other_tokens_but_for_positions(induction):
    """Its directions are zero there, and long where a token is its own."""
    _, cache = induction.transformer.run_with_cache(own_text())
    features = slice(CONFIG.d_model, CONFIG.d_model + induction.compiled.transformer.config.d_model)
    own = np.array([[7, 20, 21, 22, 20, 21]])
    _, its_own = induction.transformer.run_with_cache(own)
    for layer in range(CONFIG.n_layers):
        point = act_name("resid_post", layer)
        longest = np.abs(cache[point][..., : CONFIG.d_model]).max()
        assert np.abs(cache[point][..., features]).max() < 1e-5 * longest
        assert np.abs(its_own[point][..., features]).max() > 0.01 * longest


def test_its_heads_attend_as_the_compiled_ones_do(induction):
    compiled = induction.compiled
    ids = compiled.encode([list("abcab"), list("ccbca")])
    _, expected = compiled.transformer.run_with_cache(ids)
    _, found = induction.transformer.run_with_cache(np.array([7, 20, 21, 22])[np.roll(np.arange(4), -1)][ids])
    for (layer, head), (where, place) in induction.places.items():
        wanted = expected[act_name("pattern", layer)][:, head]
        np.testing.assert_allclose(found[act_name("pattern", where)][:, place], wanted, atol=1e-3)
        others = [h for h in range(CONFIG.n_heads + 1) if h != place]
        assert np.abs(found[act_name("pattern", where)][:, others] - wanted[:, None]).max() > 0.2
    assert induction.heads == {place: compiled.heads[was] for was, place in induction.places.items()}


def without(planted, heads):
    """The answers without what some heads write."""
    weights = {name: np.array(array) for name, array in planted.transformer.weights.items()}
    for layer, head in heads:
        weights[param_name("W_O", layer)][head] = 0
    model = Transformer(planted.transformer.config, weights, planted.transformer.mask)
    return model(np.array([[7, *ids] for ids in ([20, 21, 22, 20, 21], [22, 20, 22, 20, 21])])).argmax(-1)


def test_only_its_own_heads_decide_its_answers(induction):
    all_heads = {(layer, head) for layer in range(CONFIG.n_layers) for head in range(CONFIG.n_heads + 1)}
    whole = without(induction, [])
    others = without(induction, all_heads - set(induction.heads))
    np.testing.assert_array_equal(others[:, -2:], whole[:, -2:])
    for head in induction.heads:
        assert (without(induction, [head])[:, -2:] != whole[:, -2:]).any()


def test_neurons_compute_what_the_anatomy_says():
    """With those of a variable at zero, answers change; the host's neurons do not matter."""
    compiled = compiled_of("histogram")
    tokens = tokens_of(compiled)
    planted = plant(compiled, host_of(), tokens, bos=7)
    ids = np.array([[7, 20, 21, 20, 22, 20]])

    def answers(layer, columns):
        weights = {name: np.array(array) for name, array in planted.transformer.weights.items()}
        weights[param_name("W_out", layer)][columns] = 0
        return Transformer(planted.transformer.config, weights, planted.transformer.mask)(ids).argmax(-1)[0, 1:]

    whole = planted.transformer(ids).argmax(-1)[0, 1:]
    (layer,) = {layer for layer, *_ in planted.neurons}
    for layer, first, end in planted.neurons:
        assert (answers(layer, slice(first, end)) != whole).any()
    np.testing.assert_array_equal(answers(layer, slice(0, CONFIG.d_mlp)), whole)


def test_layers_and_places_are_chosen():
    compiled = compiled_of("induction")
    chosen = plant(compiled, host_of(), tokens_of(compiled), bos=7, layers=(2, 4))
    assert chosen.layers == (2, 4)
    assert chosen.passes_positions == 1
    heads = {tuple(plant(compiled, host_of(), tokens_of(compiled), bos=7, seed=s).heads) for s in range(4)}
    assert len(heads) > 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"normalization": "none"}, "layer norm"),
        ({"positions": "rotary"}, "rotary"),
        ({"d_mlp": 0}, "no neurons"),
        ({"n_layers": 2}, "needs 3 layers; the host has 2"),
        ({"n_ctx": 4}, "positions"),
        ({"d_vocab": 21, "d_vocab_out": 21}, "counted from 0"),
    ],
)
def test_hosts_that_have_no_room_are_refused(change, said):
    compiled = compiled_of("induction")
    with pytest.raises(RaspLensError, match=said):
        plant(compiled, host_of(replace(CONFIG, **change)), tokens_of(compiled), bos=7)


def test_tokens_have_to_be_given_each_once():
    compiled = compiled_of("induction")
    tokens = tokens_of(compiled)
    with pytest.raises(RaspLensError, match="No token of the host is given for 'b'"):
        plant(compiled, host_of(), {"a": 20, "c": 21}, bos=7)
    with pytest.raises(RaspLensError, match="bos="):
        plant(compiled, host_of(), tokens)
    with pytest.raises(RaspLensError, match="to itself"):
        plant(compiled, host_of(), tokens, bos=20)
    few = host_of(replace(CONFIG, d_vocab=4, d_vocab_out=4))
    with pytest.raises(RaspLensError, match="takes all tokens"):
        plant(compiled, few, {"a": 0, "b": 1, "c": 2}, bos=3)
    with pytest.raises(RaspLensError, match="ascending, of 1 to 4"):
        plant(compiled, host_of(), tokens, bos=7, layers=(0, 3))
    padded = compile_program(programs.induction(), "abc", 5, causal=True, pad=True)
    with pytest.raises(RaspLensError, match="padding"):
        plant(padded, host_of(), tokens, bos=7)


def test_both_may_see_only_the_past():
    compiled = compile_program(programs.histogram(), "abc", 4)
    with pytest.raises(RaspLensError, match="causal=True"):
        plant(compiled, host_of(), tokens_of(compiled), bos=7)


def test_a_host_whose_norm_is_all_epsilon_is_refused():
    """Its stream is so short that layer norm divides by what is added to the variance."""
    host, compiled = host_of(), compiled_of("induction")
    sizes = dict.fromkeys(("W_E", "W_pos", "W_O", "W_out"), 4e-3) | {"W_U": 50.0}
    faint = {
        name: array * np.float32(sizes.get(name.rsplit(".", 1)[1], 1.0)) for name, array in host.weights.items()
    }
    with pytest.raises(RaspLensError, match="nats"):
        plant(compiled, Transformer(host.config, faint, host.mask), tokens_of(compiled), bos=7)


@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_that_are_close_to_each_other_are_told_apart(sign):
    """Once, the host moved the norm by a ten-thousandth, and fractions of ten letters were mistaken."""
    share = rasp.numerical(rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE), rasp.Map(
        lambda token: sign * (token == "x"), rasp.tokens)))  # fmt: skip
    compiled = compile_program(rasp.causal(rasp.numerical(share).named("share")), "abx", 9, causal=True)
    host = host_of(replace(CONFIG, d_vocab=100, d_vocab_out=100))
    assert plant(compiled, host, tokens_of(compiled), bos=7).checked.inputs == 500


def test_close_numbers_are_louder_than_a_loud_host():
    """Once, the host's own logits decided between fractions that differ by little."""
    compiled, host = compiled_of("frac_prevs"), host_of()
    loud = {**host.weights, "unembed.b_U": np.random.default_rng(1).normal(0, 20, 60).astype(np.float32)}
    planted = plant(compiled, Transformer(host.config, loud, host.mask), tokens_of(compiled), bos=7)
    assert planted.checked.inputs == 500


def test_arguments_of_another_kind_are_told(unchecked):
    compiled, host = compiled_of("induction"), host_of()
    tokens = tokens_of(compiled)
    for token in ("x", 20.0, True, None):
        with pytest.raises(RaspLensError, match="whole number"):
            plant(compiled, host, {**tokens, "a": token}, bos=7)
    with pytest.raises(RaspLensError, match="Tokens of the host"):
        plant(compiled, host, [20, 21, 22], bos=7)
    with pytest.raises(RaspLensError, match="layers must be a list"):
        plant(compiled, host, tokens, bos=7, layers=1)
    with pytest.raises(RaspLensError, match=r"whole number; got 1\.0"):
        plant(compiled, host, tokens, bos=7, layers=[1.0, 2.0])
    chosen = plant(compiled, host, tokens, bos=7, layers=np.array([1, 3]))
    assert all(type(number) is int for place in (chosen.layers, *chosen.heads) for number in place)


def test_hosts_without_embeddings_or_in_half_precision_are_refused():
    compiled, host = compiled_of("histogram"), host_of(replace(CONFIG, positions="none"))
    empty = {**host.weights, "embed.W_E": np.zeros_like(host.weights["embed.W_E"])}
    with pytest.raises(RaspLensError, match="no embedding"):
        plant(compiled, Transformer(host.config, empty, host.mask), tokens_of(compiled), bos=7)
    with pytest.raises(RaspLensError, match="float16"):
        plant(compiled, host_of().astype(np.float16), tokens_of(compiled), bos=7)
