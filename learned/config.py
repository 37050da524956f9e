"""Settings of a training that are neither the model nor its recipe."""

from dataclasses import dataclass

from rasplens.learned.intervals import COUNT, NOT_NEGATIVE, check_intervals


@dataclass(frozen=True)
class TrainConfig:
    """Settings of `train` and `compress`; published results use the defaults.

    `chunk`, `n_monitored`, `most_devices`, `worth_sharing`, `pool` and `most_numbers` change results in their last
    bits or more: which inputs are drawn, when a training stops, in which order numbers are added.

    Attributes:
        chunk: Steps of `train` between two looks at the accuracy, each with a report.
        map_chunk: Steps of `compress` between two reports.
        n_monitored: Inputs of the fixed sample that early stopping looks at; none of them is held out.
        save_every: Seconds between two states on disk; the last state is always written.
        most_devices: The most cores that share the inputs of a step: a step has few inputs, and sharing them
            costs time.
        worth_sharing: The number of scores of a layer, or of logits, from which sharing a step is faster.
        pool: Inputs that a compression draws from, if there are too many to list.
        most_numbers: The most numbers in the layers' outputs on all inputs of the pool: 50 million are 200 MB.

    Raises:
        RaspLensError: If a size is below 1, or `save_every` negative.
    """

    chunk: int = 100
    map_chunk: int = 500
    n_monitored: int = 1_000
    save_every: float = 5.0
    most_devices: int = 4
    worth_sharing: int = 200_000
    pool: int = 20_000
    most_numbers: int = 50_000_000

    def __post_init__(self) -> None:
        check_intervals(
            self,
            **dict.fromkeys(("chunk", "map_chunk", "n_monitored", "most_devices", "pool", "most_numbers"), COUNT),
            **dict.fromkeys(("save_every", "worth_sharing"), NOT_NEGATIVE),
        )


DEFAULTS = TrainConfig()
