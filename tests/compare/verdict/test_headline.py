"""A comparison in a few lines."""

from dataclasses import replace

from subjects import subject

from rasplens.compare.claims.claim import Claim, untestable
from rasplens.compare.claims.edges.questions import GatheredEdges
from rasplens.compare.claims.effects.given_answers import GivesAnswers
from rasplens.compare.claims.effects.subjects import Sufficient
from rasplens.compare.verdict.headline import MOST, headline, in_words, refutation
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
    (least,) = found.reasons
    assert least.startswith(f"Holds least clearly: {words('keys')}. ")
    assert all(figure in least for figure in ("90%", "(80% to 91%)", "75% is needed", "the control has 10%"))


def test_what_fails_comes_first_then_what_is_open_then_what_cannot_be_tested():
    claims = [claim("open one", status="cannot tell", score=0.7, low=0.6)]
    claims += [claim(name, status="fails", score=score, low=score - 0.1) for name, score in FAILING]
    found = of(ANSWERS, *claims, untestable(subject("variables", "x"), "constant"))
    assert found.levels[2].counts == "0 of 3 claims hold, 2 fail, 1 open"
    assert found.levels[1].counts == "no claim that can be tested"
    begun = [reason.partition(".")[0] for reason in found.reasons[:3]]
    assert begun == [f"Fails: {words('values')}", f"Fails: {words('keys')}", f"Open: {words('open one')}"]
    assert "10% of the answers come out" in found.reasons[0]
    assert "75% is needed;" in found.reasons[2]  # its score is below that
    nearly = of(ANSWERS, claim("keys", status="cannot tell", score=0.8, low=0.7))
    assert "75% is needed, by the lower end" in nearly.reasons[0]
    assert found.reasons[3] == "Not testable: variable x (constant)."


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
    assert found.reasons[2].startswith(f"Fails: {words('edge 2')}. ")
    assert found.reasons[3:] == (
        "6 more claims do not hold.",
        "Not testable: variable x (constant).",
    )


def test_of_a_part_the_share_is_of_what_moves_and_a_threshold_that_depends_on_the_model_is_left_out():
    edges = Claim(GatheredEdges(("previous",), ()), "in part", 0.54, 0.48, 0.61, 0.35, 150, True, "patched")
    assert "54% of the logit difference moves" in in_words(edges, is_of_part=True)
    assert "54% of the answers come out" in in_words(edges, is_of_part=False)
    given = Claim(GivesAnswers(), "holds", 0.5, 0.4, 0.6, 0.08, 150, True, "given")
    assert in_words(given, is_of_part=True).endswith("(40% to 60%); the control has 8%.")
    assert in_words(replace(given, control=NAN), is_of_part=True).endswith("(40% to 60%).")


def test_heads_of_a_part_need_half():
    assert Sufficient.at_least < GatheredEdges.at_least
