"""From evidence to a verdict."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare.evidence.axes import AXES, Axis, without_score
from rasplens.compare.evidence.interchange.accuracy import Interchange
from rasplens.compare.evidence.interchange.patching import Agreement
from rasplens.compare.verdict.verdict import (
    AGREES,
    IMPLEMENTS,
    NOT,
    PARTLY,
    RIGHT,
    UNKNOWN,
    Calibration,
    features,
    probability,
    shipped,
    variable_verdict,
    verdict,
)

MAPPING = Calibration((4.0, 4.0, 2.0), -6.0, 0.9, 0.5, 0.8, {})
"""With every axis at s, the log-odds are 10 s - 6: 0.88 at 0.8, 0.27 at 0.5, 0.98 at 1."""


def axes(score, margin=0.0, **others):
    scores = dict.fromkeys(AXES, score) | others
    return [
        without_score(name, "nothing")
        if value is None
        else Axis(name, value, max(0.0, value - margin), min(1.0, value + margin), "a note")
        for name, value in scores.items()
    ]


def interchanged(score, name="x", random=0.0, untrained=0.0, active=None):
    pairs = Agreement(np.full(10, score), np.ones(10))
    return Interchange(
        variable=name, point="", method="linear map", rank=1.0, accuracy=pairs, random=random, untrained=untrained,
        active=score if active is None else active, dormant=0.0, full_stream=0.0, ablated=0.0, ablated_random=0.0,
    )  # fmt: skip


def test_a_compiled_model_implements_its_program(with_itself):
    found = verdict(axes(1.0), [interchanged(1.0)], with_itself)
    assert found.answer == IMPLEMENTS
    assert found.probability > 0.9
    assert found.variables == {"x": IMPLEMENTS}


def test_a_model_whose_answers_are_wrong_implements_nothing(with_noise):
    """Whatever the other axes say."""
    found = verdict(axes(1.0), [], with_noise, MAPPING)
    assert found.answer == NOT
    assert "hardly better than an untrained model's" in found.reasons[0]
    assert 0 < RIGHT < 0.5


def test_a_model_that_often_answers_otherwise_does_not_implement_the_program(with_itself):
    """However alike it is inside: that is a part of the program at best."""
    found = verdict(axes(1.0, behaviour=AGREES - 0.01), [], with_itself, MAPPING)
    assert found.probability > MAPPING.implements
    assert found.answer == PARTLY
    assert "only 0.940 of the way" in found.reasons[0]
    assert verdict(axes(1.0, behaviour=AGREES), [], with_itself, MAPPING).answer == IMPLEMENTS


def test_without_anything_between_input_and_output_it_cannot_be_told(with_itself):
    found = verdict(axes(None, behaviour=1.0), [], with_itself, MAPPING)
    assert found.answer == UNKNOWN
    assert np.isnan([found.probability, found.low, found.high]).all()
    assert str(found) == "cannot tell"
    assert verdict(axes(1.0, behaviour=None), [], with_itself, MAPPING).answer == UNKNOWN
    assert verdict(axes(None, behaviour=1.0, attention=1.0), [], with_itself, MAPPING).answer == IMPLEMENTS


@pytest.mark.parametrize(
    ("score", "margin", "answer"),
    [
        (1.0, 0.0, IMPLEMENTS),
        (1.0, 0.3, IMPLEMENTS),
        (1.0, 0.45, UNKNOWN),  # from "does not" to "implements"
        (0.7, 0.0, UNKNOWN),  # between both thresholds
        (0.2, 0.0, NOT),
        (0.2, 0.3, NOT),
        (0.5, 0.5, UNKNOWN),
    ],
)
def test_the_answer_follows_the_probability_and_how_sure_it_is(with_itself, score, margin, answer):
    found = verdict(axes(score, margin), [], with_itself, MAPPING)
    assert found.answer == answer
    assert found.low <= found.probability <= found.high
    assert found.probability == pytest.approx(1 / (1 + np.exp(6 - 10 * score)))


def test_some_variables_without_the_others_are_a_part(with_itself):
    some, none = [interchanged(1.0, "a"), interchanged(0.1, "b")], [interchanged(0.1, "a"), interchanged(0.1, "b")]
    assert verdict(axes(0.2), some, with_itself, MAPPING).answer == PARTLY
    assert verdict(axes(0.2), none, with_itself, MAPPING).answer == NOT
    routes = verdict(axes(0.2), [interchanged(1.0, "a")], with_itself, MAPPING)  # all of them, by other routes
    assert routes.answer == PARTLY
    assert verdict(axes(1.0), some, with_itself, MAPPING).answer == IMPLEMENTS


def test_a_variable_is_implemented_above_its_best_control():
    assert variable_verdict(interchanged(0.8), MAPPING) == IMPLEMENTS
    assert variable_verdict(interchanged(0.79), MAPPING) == PARTLY
    assert variable_verdict(interchanged(0.39), MAPPING) == NOT
    assert variable_verdict(interchanged(0.8, random=0.2), MAPPING) == PARTLY
    assert variable_verdict(interchanged(0.8, untrained=0.7), MAPPING) == NOT


def test_a_variable_that_needs_a_dormant_path_is_implemented_in_part_at_best():
    assert variable_verdict(interchanged(1.0, active=0.79), MAPPING) == PARTLY
    assert variable_verdict(interchanged(1.0, active=0.0), MAPPING) == PARTLY
    assert variable_verdict(interchanged(1.0, active=0.8), MAPPING) == IMPLEMENTS


def test_the_mapping_sees_the_lowest_the_mean_and_behaviour():
    seen = features(axes(0.8, 0.1, behaviour=0.9, attention=0.1, ablation=None))
    np.testing.assert_allclose(seen, [0.1, (0.8 + 0.8 + 0.9 + 0.1) / 4, 0.9])
    np.testing.assert_allclose(features(axes(0.8, 0.1), "low"), [0.7, 0.7, 0.7])
    np.testing.assert_allclose(features(axes(0.8, 0.1), "high"), [0.9, 0.9, 0.9])
    assert features(axes(None)) is None


def test_the_probability_is_logistic():
    seen = np.array([[0.1, 0.5, 0.9], [1.0, 1.0, 1.0]])
    np.testing.assert_allclose(probability(MAPPING, seen), 1 / (1 + np.exp(6 - seen @ [4, 4, 2])))


def test_more_evidence_is_never_less_likely(with_itself):
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = dict(zip(AXES, rng.random(5), strict=True))
        name = AXES[rng.integers(5)]
        more = scores | {name: scores[name] + (1 - scores[name]) * rng.random()}
        for mapping in (MAPPING, shipped()):
            less, greater = (probability(mapping, features(axes(0.0, **values))) for values in (scores, more))
            assert greater >= less


def test_reasons_name_every_axis_the_weakest_first_and_those_without_a_score_last(with_itself):
    found = verdict(axes(0.9, 0.05, attention=0.2, ablation=None), [], with_itself, MAPPING)
    assert len(found.reasons) == 5
    assert found.reasons[0].startswith("attention 0.20 (0.15 to 0.25): a note")
    assert found.reasons[-1] == "ablation: no score (nothing)"
    interval = f"{found.low:.2f} to {found.high:.2f}"
    assert str(found) == f"{found.answer} (P(implements) = {found.probability:.2f}, {interval})"


def test_a_mapping_survives_json():
    mapping = replace(MAPPING, provenance={"pairs": 12})
    assert Calibration.from_dict(json.loads(json.dumps(mapping.to_dict()))) == mapping


def test_the_shipped_mapping_is_sane():
    mapping = shipped()
    assert min(mapping.weights) >= 0
    assert 0 < mapping.does_not <= mapping.implements < 1
    assert probability(mapping, np.ones(3)) > mapping.implements
    assert probability(mapping, np.zeros(3)) < mapping.does_not
