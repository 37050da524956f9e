"""Protocols and scorings: only values that mean something."""

import pytest

from rasplens.compare.discovery.protocol import Protocol, Scoring
from rasplens.errors import RaspLensError


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (Protocol, {"ablation": "none"}, r"ablation of a Protocol .*zero, mean, resample; got 'none'"),
        (Protocol, {"metric": "accuracy"}, r"metric .*kl, loss, logit_difference, l2; got 'accuracy'"),
        (Protocol, {"corruption": "names"}, r"corruption .*task, one_token; got 'names'"),
        (Protocol, {"answers": "most"}, r"answers .*mean, sum; got 'most'"),
        (Protocol, {"n_pairs": 1}, r"n_pairs .*2; got 1\."),
        (Protocol, {"points": 0}, r"points .*1; got 0\."),
        (Scoring, {"unscored": "first"}, r"unscored of a Scoring .*last, out; got 'first'"),
        (Scoring, {"embeddings": "in"}, r"embeddings .*apart, one, out; got 'in'"),
        (Scoring, {"heads": "half"}, r"heads .*qkv, whole; got 'half'"),
        (Scoring, {"circuit": "true"}, r"circuit .*seen, program; got 'true'"),
        (Scoring, {"curve": "flat"}, r"curve .*whole, stairs; got 'flat'"),
        (Scoring, {"floor": 1.0}, r"floor .*got 1\.0"),
        (Scoring, {"floor": -1e-9}, r"floor .*got -1e-09"),
        (Scoring, {"floor": float("nan")}, r"floor .*got nan"),
    ],
)
def test_what_makes_no_sense_is_refused(kind, fields, message):
    with pytest.raises(RaspLensError, match=message):
        kind(**fields)
