"""The architecture of a learned transformer, except for the sizes that its task sets."""

from dataclasses import asdict, dataclass
from typing import Any

from rasplens.learned.intervals import COUNT, NOT_NEGATIVE, check_intervals
from rasplens.model import Config
from rasplens.tasks import Task


@dataclass(frozen=True)
class Architecture:
    """A transformer without the sizes that its task sets; see `rasplens.model.Config`.

    Attributes:
        bias: Whether biases are trained.

    Raises:
        RaspLensError: If a size is out of range, or the positions, normalization or activation are unknown.
    """

    n_layers: int
    n_heads: int
    d_model: int
    d_head: int
    positions: str = "learned"
    smeared_keys: bool = False
    identity_v: bool = False
    identity_o: bool = False
    normalization: str = "none"
    activation: str = "relu"
    d_mlp: int = 0
    bias: bool = False

    def __post_init__(self) -> None:
        sizes = dict.fromkeys(("n_layers", "d_mlp"), NOT_NEGATIVE)
        check_intervals(self, **sizes, **dict.fromkeys(("n_heads", "d_model", "d_head"), COUNT))
        self._config(n_ctx=1, d_vocab=1, d_vocab_out=1)  # which refuses unknown words

    def __str__(self) -> str:
        parts = [f"{self.n_layers}L{self.n_heads}H", f"d_model={self.d_model}"]
        kind = "" if self.activation == "relu" else f" {self.activation} neurons"
        parts += [f"MLPs of {self.d_mlp}{kind}"] if self.d_mlp else []
        parts += [f"{self.positions} positions"] if self.positions in ("shortformer", "rotary") else []
        parts += ["smeared keys"] if self.smeared_keys else []
        frozen = [
            name for name, is_identity in (("W_V", self.identity_v), ("W_O", self.identity_o)) if is_identity
        ]
        parts += [f"{' = '.join(frozen)} = I"] if frozen else []
        parts += [self.normalization] if self.normalization != "none" else []
        parts += ["biases"] if self.bias else []
        return ", ".join(parts)

    def config(self, task: Task) -> Config:
        """The config of this architecture for a task."""
        return self._config(n_ctx=task.n_ctx, d_vocab=len(task.vocab), d_vocab_out=task.n_logits)

    def _config(self, **sizes: Any) -> Config:
        fields = {name: value for name, value in asdict(self).items() if name != "bias"}
        return Config(**sizes, **fields)
