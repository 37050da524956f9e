"""The claims on a part of a model, in words."""

from rasplens.compare.claims.catalogue import SUBJECTS
from rasplens.compare.claims.claim import Subject
from rasplens.compare.claims.effects.subjects import CarriedBy, Fed, Sufficient

HEADS = ((0, 1), (2, 0))


def test_each_is_named_by_aggregates_and_heads_and_read_again():
    found = {
        CarriedBy(("a", "b"), HEADS): "a and b in L0H1+L2H0",
        Fed(("a",), "keys", ("b",), HEADS): "a to the keys of b, L0H1+L2H0",
        Sufficient(HEADS): "L0H1+L2H0 alone: enough for the answer",
    }
    for subject, words in found.items():
        assert str(subject) == words
        assert Subject.from_dict(subject.to_dict(), SUBJECTS) == subject
        assert subject.level == "routes"
