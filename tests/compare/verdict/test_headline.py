"""A comparison in a few lines."""

from dataclasses import replace

from subjects import subject

from rasplens.compare.claims.claim import Claim, untestable
from rasplens.compare.verdict.headline import MOST, headline, refutation
from rasplens.compare.verdict.verdict import verdict

NAN = float("nan")


def claim(name, kind="routes", status="holds", score=1.0, low=0.97):
    return Claim(subject(kind, name), status, score, low, min(1.0, score + 0.01), 0.1, 150, True, "patched")


FAILING = ("keys", 0.2), ("values", 0.1)

ANSWERS = claim("held out", "answers")


def words(name):
    return str(subject("routes", name))


def of(*claims):
    return headline("last", verdict(claims))


def test_what_holds_is_counted_and_the_least_clear_claim_named():
    found = of(ANSWERS, claim("keys", score=0.9, low=0.8), claim("values"))
    assert found.sentence == "The learned model implements the program 'last'."
    assert [(line.level, line.answer, line.counts) for line in found.levels] == [
        ("answers", "implements", "1 of 1 claims hold"),
        ("variables", "not testable", "no claim that can be tested"),
        ("routes", "implements", "2 of 2 claims hold"),
    ]
    assert found.reasons == (f"The claim that holds least clearly: {words('keys')}, 0.90 (0.80 to 0.91).",)


def test_what_fails_comes_first_then_what_is_open_then_what_cannot_be_tested():
    claims = [claim("open one", status="cannot tell", score=0.7, low=0.6)]
    claims += [claim(name, status="fails", score=score, low=score - 0.1) for name, score in FAILING]
    found = of(ANSWERS, *claims, untestable(subject("variables", "x"), "constant"))
    assert found.levels[2].counts == "0 of 3 claims hold, 2 fail, 1 open"
    assert found.levels[1].counts == "no claim that can be tested"
    assert found.reasons == (
        f"Fails: {words('values')}, 0.10 (0.00 to 0.11).",
        f"Fails: {words('keys')}, 0.20 (0.10 to 0.21).",
        f"Open: {words('open one')}, 0.70 (0.60 to 0.71).",
        "Not testable: variable x (constant).",
    )


def test_a_class_of_inputs_is_named():
    where = "position 1 is 'd' (20% of the answers)"
    failing = replace(claim("keys", status="fails", score=0.1, low=0.0), except_where=where)
    found = of(ANSWERS, failing, claim("values"))
    assert (
        found.sentence == f"The learned model implements the program 'last' in part: everywhere but where {where}."
    )
    assert f"where {where}; it holds elsewhere" in found.reasons[0]
    others = (claim("queries", status="fails", score=0.1, low=0.0), replace(failing, except_where="'a' occurs"))
    for other in others:
        assert "everywhere but" not in of(ANSWERS, failing, other, claim("values")).sentence


def test_a_counterexample_is_told_with_its_claim():
    plain = claim("values", status="fails", score=0.1, low=0.0)
    shown = replace(claim("keys", status="fails", score=0.2), counterexample="on 'a' the program answers a")
    found = of(ANSWERS, plain, shown)
    assert "For example" not in found.reasons[0]
    assert found.reasons[1].endswith(". For example, on 'a' the program answers a.")


def test_what_refutes_a_program_is_the_worst_claim_that_names_a_question():
    plain = claim("values", status="fails", score=0.1, low=0.0)
    shown = replace(claim("keys", status="fails", score=0.2), counterexample="on 'a' the program answers a")
    better = replace(claim("queries", status="fails", score=0.3), counterexample="on 'b' the program answers b")
    assert (
        refutation(verdict([ANSWERS, better, plain, shown]))
        == f"{words('keys')!r} fails: on 'a' the program answers a."
    )
    held = replace(claim("keys"), counterexample="on 'a' the program answers a")
    assert not refutation(verdict([ANSWERS, plain, held]))


def test_proved_claims_are_counted():
    proved = replace(claim("keys"), proof="all 64 pairs", low=1.0, high=1.0)
    by_row = replace(claim("values"), proof="all 64 pairs, row by row", low=0.9, high=1.0)
    (routes,) = (line for line in of(ANSWERS, proved, by_row).levels if line.level == "routes")
    assert routes.counts == "2 of 2 claims hold, 1 proved"


def test_no_more_sentences_than_can_be_read():
    many = [claim(f"edge {i}", status="fails", score=i / 100, low=0.0) for i in range(9)]
    found = of(ANSWERS, *many, untestable(subject("variables", "x"), "constant"))
    assert len(found.reasons) == MOST
    assert found.reasons[2:] == (
        f"Fails: {words('edge 2')}, 0.02 (0.00 to 0.03).",
        "6 more claims do not hold.",
        "Not testable: variable x (constant).",
    )
