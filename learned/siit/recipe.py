"""How strict interchange-intervention training goes."""

from dataclasses import dataclass

from rasplens.compile import CompiledModel
from rasplens.learned.architecture import Architecture
from rasplens.learned.intervals import COUNT, NOT_NEGATIVE, POSITIVE, SHARE
from rasplens.learned.optimisation import check_optimisation

LEAST_LAYERS, LEAST_HEADS = 2, 4
"""As in InterpBench: no smaller, whatever the program needs."""


@dataclass(frozen=True)
class SIITRecipe:
    """The optimisation of strict interchange-intervention training, and how its losses are weighed.

    InterpBench (Gupta et al. 2024, arXiv 2407.14494, appendix B) gives them 1, 1 and 0.4, each with a step of its
    own; its code applies the last weight twice, so that it acts as 0.16. Here they are added up in one step, and
    count alike; a fourth loss, `readout`, is ours. There, AdamW has a rate of 1e-3, betas of 0.9 and 0.9, batches
    of 256 and a clip of 0.1, for up to 500 epochs. docs/siit.md has what each change did.

    Attributes:
        steps: Of AdamW in the first cycle, with a rate that rises and then falls to zero.
        cycles: The most that there are, each twice as long as the one before.
        enough: With behaviour, interchange, strict and, with `both`, within accuracy at least this on training
            inputs, there are no more of them.
        batch_size: Inputs per step.
        learning_rate: Its peak.
        warmup: Steps until then.
        weight_decay: Decoupled, on every weight.
        b2: Decay of the second moment.
        clip: Global norm that gradients are clipped to.
        behaviour: The weight of the loss on inputs as they are.
        interchange: Of that under interchange interventions on the program's nodes.
        strict: Of that when nodes outside of the circuit are resampled.
        both: How often, under interchange, all nodes outside of the circuit are resampled, or held, as well. The
            published training does not, and they come to pass an interchange on, though none matters otherwise:
            see `ImplementationAccuracy.within`.
        readout: Of the error of reading each variable linearly off its node; see `losses`.
        pool: Different inputs that are trained on, at most.

    Raises:
        RaspLensError: If a field is out of range.
    """

    steps: int = 1_000
    cycles: int = 5
    enough: float = 0.998
    batch_size: int = 128
    learning_rate: float = 3e-3
    warmup: int = 200
    weight_decay: float = 0.0
    b2: float = 0.98
    clip: float = 1.0
    behaviour: float = 1.0
    interchange: float = 1.0
    strict: float = 1.0
    both: float = 0.5
    readout: float = 5.0
    pool: int = 20_000

    def __post_init__(self) -> None:
        check_optimisation(
            self,
            **dict.fromkeys(("cycles", "pool"), COUNT),
            **dict.fromkeys(("behaviour", "interchange", "strict", "readout"), NOT_NEGATIVE),
            **dict.fromkeys(("enough", "both"), SHARE),
            clip=POSITIVE,
        )

    @property
    def lengths(self) -> tuple[int, ...]:
        """The steps of each cycle."""
        return tuple(self.steps * 2**cycle for cycle in range(self.cycles))


def ordinary_architecture(compiled: CompiledModel, d_model: int = 64, normalization: str = "none") -> Architecture:
    """A transformer of ordinary shape that has a node for each of a program's variables.

    It has the compiled model's layers, at least two, and as many heads a layer, at least four; GELU neurons, four
    for every direction of the stream; and a width that does not depend on the program.
    """
    config = compiled.transformer.config
    n_heads = max(LEAST_HEADS, config.n_heads)
    return Architecture(
        n_layers=max(LEAST_LAYERS, config.n_layers),
        n_heads=n_heads,
        d_model=d_model,
        d_head=max(d_model // n_heads, 16),
        normalization=normalization,
        activation="gelu",
        d_mlp=4 * d_model,
        bias=True,
    )
