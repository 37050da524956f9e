"""Both models of a comparison, where they are small enough to be kept in its file and run in its report."""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from rasplens.compare.evidence.attention.active_heads import over_sequence
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import Head, StudiedModel
from rasplens.compile.rasp import Value
from rasplens.errors import RaspLensError
from rasplens.model import Config, HookedModel, Transformer
from rasplens.model.hook_points import act_name
from rasplens.tasks.task import Ids

ShownSide = Literal["compiled", "learned"]


@runtime_checkable
class Attends(Protocol):
    """A model that can be asked what its heads attend to."""

    def pattern(self, ids: Ids, head: Head) -> Float[np.ndarray, "input query key"]:
        """Return the attention of a head on inputs, between the task's positions."""


@dataclass(frozen=True, eq=False)
class ModelPair:
    """Both models of a comparison, and the names of what they are asked.

    Attributes:
        positions: The name of each of the task's positions.
        tokens: The name of each of its tokens, by its id.
        variables: What each head of the compiled model gathers.
        compiled: The compiled model.
        learned: The learned one.
    """

    positions: tuple[str, ...]
    tokens: tuple[str, ...]
    variables: Mapping[Head, str]
    compiled: Attends
    learned: Attends

    def ids(self, tokens: str | Sequence[Value]) -> Ids:
        """One input as the task's ids, `[1, pos]`.

        Args:
            tokens: A token, or its name, for each position; as text, with spaces or commas between them, of which
                none may be part of a token.

        Raises:
            RaspLensError: If they are too few or too many, or the name of one is that of no token, or of several.
        """
        names = self._split(tokens) if isinstance(tokens, str) else [str(token) for token in tokens]
        if len(names) != len(self.positions):
            between = f" Put {self._between} between them." if isinstance(tokens, str) else ""
            raise RaspLensError(
                f"An input has {len(self.positions)} tokens, one for each of the positions "
                f"{' '.join(self.positions)}; got {len(names)}.{between}"
            )
        for name in names:
            if (n := self.tokens.count(name)) != 1:
                several = "Several tokens are" if n else "No token is"
                raise RaspLensError(f"{several} written {name!r}. The task's tokens: {' '.join(self.tokens)}.")
        return np.array([[self.tokens.index(name) for name in names]])

    @property
    def separators(self) -> str:
        """The characters, of a space and a comma, that stand in no token and so may stand between them."""
        return "".join(one for one in " ," if not any(one in token for token in self.tokens))

    @property
    def _between(self) -> str:
        return " or ".join({" ": "spaces", ",": "commas"}[one] for one in self.separators)

    def _split(self, text: str) -> list[str]:
        if not self.separators:
            raise RaspLensError(
                "Tokens of this task have spaces and commas in them, so no text can be split into tokens. Give a "
                "sequence of tokens to attention_figure."
            )
        return [name for part in re.split(f"[{self.separators}]", text) if (name := part.strip())]

    def pattern(self, side: ShownSide, ids: Ids, head: Head) -> Float[np.ndarray, "input query key"]:
        """Return the attention of a head on inputs; of a compiled head, without what a BOS gets."""
        if side == "learned":
            return self.learned.pattern(ids, head)
        return over_sequence(self.compiled.pattern(ids, head))


@dataclass(frozen=True, eq=False)
class LiveModel:
    """A model that is being compared, on any inputs."""

    studied: StudiedModel

    def pattern(self, ids: Ids, head: Head) -> Float[np.ndarray, "input query key"]:
        """Return the attention of a head on inputs, between the task's positions."""
        layer, index = head
        return self.studied.on(ids).pattern(layer)[:, index]


@dataclass(frozen=True, eq=False)
class KeptModel:
    """A model, and how it takes the inputs of a task.

    Attributes:
        transformer: Its weights, in float32.
        rows: Its ids of an input of which all tokens are the same, by the task's id of that token.
        places: Its position of each of the task's.
    """

    transformer: Transformer
    rows: Int[np.ndarray, "token ctx"]
    places: tuple[int, ...]

    def tokens(self, ids: Ids) -> Int[np.ndarray, "input ctx"]:
        """The ids of the model that stand for a task's."""
        tokens = np.repeat(self.rows[:1], len(ids), axis=0)
        tokens[:, list(self.places)] = self.rows[ids, list(self.places)]
        return tokens

    def pattern(self, ids: Ids, head: Head) -> Float[np.ndarray, "input query key"]:
        """Return the attention of a head on inputs, between the task's positions."""
        layer, index = head
        _, cache = self.transformer.run_with_cache(self.tokens(ids))
        return cache[act_name("pattern", layer)][:, index][:, self.places][..., self.places]

    def to_dict(self) -> dict[str, Any]:
        """In JSON values; of each array its shape, and its numbers (float32, little-endian) in base64."""
        return {
            "config": self.transformer.config.to_dict(),
            "weights": {name: _as_text(array) for name, array in self.transformer.weights.items()},
            "mask": self.transformer.mask.astype(int).tolist(),
            "rows": self.rows.tolist(),
            "places": list(self.places),
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "KeptModel":
        """The model that `to_dict` described."""
        weights = {name: _as_array(one) for name, one in values["weights"].items()}
        mask = np.array(values["mask"], dtype=bool)
        transformer = Transformer(Config.from_dict(values["config"]), weights, mask)
        return KeptModel(transformer, np.array(values["rows"]), tuple(values["places"]))


@dataclass(frozen=True, eq=False)
class KeptModels(ModelPair):
    """Both models, small enough to be stored."""

    compiled: KeptModel
    learned: KeptModel

    def to_dict(self) -> dict[str, Any]:
        """In JSON values."""
        return {
            "positions": list(self.positions),
            "tokens": list(self.tokens),
            "separators": self.separators,
            "variables": [[*head, name] for head, name in self.variables.items()],
            "compiled": self.compiled.to_dict(),
            "learned": self.learned.to_dict(),
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "KeptModels":
        """The models that `to_dict` described."""
        return KeptModels(
            tuple(map(str, values["positions"])),
            tuple(map(str, values["tokens"])),
            {(layer, index): name for layer, index, name in values["variables"]},
            *(KeptModel.from_dict(values[side]) for side in ("compiled", "learned")),
        )


def live_models(pairing: Pairing) -> ModelPair:
    """Both models of a comparison that was made in this session."""
    task, sides = pairing.task, (LiveModel(pairing.reference), LiveModel(pairing.learned))
    return ModelPair(tuple(task.positions), task.token_names, pairing.compiled.heads, *sides)


def kept_models(pairing: Pairing) -> KeptModels | None:
    """Both models of a comparison; None where one is too large or another module, or takes tokens its own way."""
    names, sides = pairing.task.token_names, (pairing.reference, pairing.learned)
    compiled, learned = (_kept(studied, pairing.config.most_kept_weights) for studied in sides)
    if compiled is None or learned is None or len(set(names)) < len(names):
        return None
    return KeptModels(tuple(pairing.task.positions), names, pairing.compiled.heads, compiled, learned)


def _kept(studied: StudiedModel, most_weights: int) -> KeptModel | None:
    """A model in a form that can be stored; None if it is more than its weights, or has more of them than that."""
    model, n_pos = studied.model, studied.n_pos
    if not isinstance(model, HookedModel) or model.is_hooked or studied.padding != "token":
        return None
    weights = dict(model.named_parameters())
    if sum(one.numel() for one in weights.values()) > most_weights:
        return None
    try:
        rows = studied.vocabulary.tokens(np.repeat(np.arange(len(studied.task.vocab))[:, None], n_pos, axis=1))
    except RaspLensError:  # an input that is all padding, for one
        return None
    arrays = {name: one.detach().cpu().numpy().astype("<f4") for name, one in weights.items()}
    mask = dict(model.named_buffers())["mask"].cpu().numpy()
    transformer = Transformer(model.cfg, arrays, mask)
    found = KeptModel(transformer, np.asarray(rows), tuple(studied.vocabulary.positions))
    return found if (found.tokens(studied.ids) == studied.tokens.numpy()).all() else None


def _as_text(array: np.ndarray) -> dict[str, Any]:
    data = np.ascontiguousarray(array, dtype="<f4").tobytes()
    return {"shape": list(array.shape), "data": base64.b64encode(data).decode()}


def _as_array(values: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(values["data"]), dtype="<f4").reshape(values["shape"]).astype(np.float32)
