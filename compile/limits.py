"""How far the compiler goes before it refuses or samples: what one may want to change for a large program."""

from dataclasses import dataclass, fields

from rasplens.errors import RaspLensError


@dataclass(frozen=True)
class CompileLimits:
    """The most that the compiler enumerates; every limit is a number of values, pairs, sequences or bytes.

    Attributes:
        max_values: The values that a variable may take; a program with more is refused.
        max_combinations: The pairs of values that an operation of two variables, or a selector, may meet; a
            program with more is refused.
        enumerated_inputs: Input spaces of at most this many sequences are searched in full for inputs on
            which the program is undefined.
        sampled_inputs: The sequences of a larger input space that are searched.
        undefined_examples: The undefined inputs of every variable that are looked at.
        executed_inputs: Input spaces of at most this many sequences are run in full to see which values
            occur.
        max_bytes: The memory that the weights and masks of a model may take, or one table on the way to them.
        circuit_inputs: The inputs on which the connections of a ground-truth circuit are tried, where there
            are more.

    Raises:
        RaspLensError: If a limit is below 0.
    """

    max_values: int = 20_000
    max_combinations: int = 2_000_000
    enumerated_inputs: int = 100_000
    sampled_inputs: int = 2_000
    undefined_examples: int = 20
    executed_inputs: int = 20_000
    max_bytes: int = 2**31
    circuit_inputs: int = 500

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 0:
                raise RaspLensError(f"{field.name} must be 0 or more; got {getattr(self, field.name)}.")


DEFAULT_LIMITS = CompileLimits()
"""The default limits."""
