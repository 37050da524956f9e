"""The claims on a part of a model that its heads decide."""

from dataclasses import dataclass
from typing import Final

from rasplens.compare.claims.edges.program_edges import Aggregates
from rasplens.compare.claims.edges.questions import Route
from rasplens.compare.subject.studied_model import Head, named
from rasplens.model.interventions import EdgePart

HALF_OF_IT: Final = 0.5
"""A claim on which heads are at work holds from this share on: some are left out."""


@dataclass(frozen=True)
class CarriedBy(Route):
    """What is gathered along a selector's edges decides in a few heads. A search that finds them refutes nothing.

    Attributes:
        aggregates: The aggregates that share the selector.
        heads: The model's heads.
    """

    can_fail = False
    at_least = HALF_OF_IT
    tested = "With values in these heads alone from another input"

    aggregates: Aggregates
    heads: tuple[Head, ...]

    def __str__(self) -> str:
        return f"{' and '.join(self.aggregates)} in {named(self.heads)}"


@dataclass(frozen=True)
class Fed(Route):
    """What some aggregates gather decides through the keys, queries or values of heads that read it.

    Attributes:
        source: The aggregates.
        part: What reads them.
        reader: The aggregates of these heads.
        heads: The model's heads.
    """

    tested = "With values on this path alone from another input"

    source: Aggregates
    part: EdgePart
    reader: Aggregates
    heads: tuple[Head, ...]

    def __str__(self) -> str:
        return (
            f"{' and '.join(self.source)} to the {self.part} of {' and '.join(self.reader)}, {named(self.heads)}"
        )


@dataclass(frozen=True)
class Sufficient(Route):
    """With all that other heads gather taken from another input, the answer stays. Of a part this refutes nothing.

    Attributes:
        heads: The model's heads that are left as they are.
    """

    can_fail = False
    at_least = HALF_OF_IT
    tested = "With what all other heads gather from another input"

    heads: tuple[Head, ...]

    def __str__(self) -> str:
        return f"{named(self.heads)} alone: enough for the answer"
