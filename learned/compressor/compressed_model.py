"""The result of compressing: a transformer with more features than directions in its residual stream."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rasplens.compile.compiled import CompiledModel
from rasplens.compile.display.drawing import direction_labels
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.storage.anatomy_files import anatomy_from_json, anatomy_to_json
from rasplens.compile.variable import Variable, nearest
from rasplens.errors import RaspLensError
from rasplens.learned.compressor.projection import narrow
from rasplens.learned.compressor.recipe import CompressionRecipe
from rasplens.model import (
    Config,
    StorageError,
    Transformer,
    bias_shapes,
    load,
    load_provenance,
    save,
    weight_shapes,
)
from rasplens.model.storage import reading

_KIND = "compressed program"


@dataclass(frozen=True, eq=False)
class CompressedModel:
    """A compiled model behind one linear map: a transformer with d directions, in which features share them.

    Attributes:
        transformer: What it runs as: hooked, disguised and compared like any other.
        compiled: The model that was compressed.
        projection: The map W, `[D, d]`: row i is where the residual direction i of the compiled model went.
        recipe: How it was found; None for a map from elsewhere, such as principal components.
        seed: Of the first map and of the inputs.
        history: (step, loss of the answers, loss of the layers' outputs) after every chunk of steps; the map is
            the one at the step where their mean was least.
    """

    transformer: Transformer
    compiled: CompiledModel
    projection: Float[np.ndarray, "D d"]
    recipe: CompressionRecipe | None = None
    seed: int = 0
    history: tuple[tuple[int, float, float], ...] = field(default=(), repr=False)

    @property
    def d(self) -> int:
        """The width of its residual stream."""
        return self.projection.shape[1]

    @property
    def origin(self) -> str:
        """Where it comes from."""
        return f"{self.compiled.output!r}, compressed to {self.d} of {len(self.projection)} directions"

    @property
    def labels(self) -> list[str]:
        """The label of each row of the projection: its direction of the compiled residual stream."""
        return direction_labels(self.compiled)

    @property
    def overlap(self) -> Float[np.ndarray, "D D"]:
        """How much of each feature is read where each feature was written: `W Wᵀ`, the identity without loss."""
        return self.projection @ self.projection.T

    def answers(self, sequences: Sequence[Sequence[Value]]) -> list[list[Value]]:
        """Return answers to sequences of one length; it also answers where the program is undefined.

        Raises:
            RaspLensError: If a sequence does not fit the model, or the lengths differ.
        """
        output = self.compiled.variables[self.compiled.output]
        logits = self.transformer(self.compiled.encode(sequences))[:, self.compiled.offset :]
        return [[(*output.values, None)[code] for code in row] for row in best_codes(output, logits)]

    def save(self, path: str | Path) -> None:
        """Writes it to one file, which `rasplens.model.load` reads as a transformer, too.

        Raises:
            StorageError: If the folder does not exist.
        """
        source = self.compiled.transformer
        provenance = {
            "kind": _KIND,
            "anatomy": anatomy_to_json(self.compiled),
            "config": source.config.to_dict(),
            "weights": {name: _sparse(array) for name, array in source.weights.items()},
            "dtype": source.dtype.name,
            "projection": self.projection.tolist(),
            "recipe": None if self.recipe is None else asdict(self.recipe),
            "seed": self.seed,
            "history": self.history,
        }
        save(self.transformer, path, provenance)

    def __repr__(self) -> str:
        wide = self.compiled.transformer.config.d_model
        return f"CompressedModel({self.compiled.output!r}: {wide} directions in {self.d}, seed {self.seed})"


def best_codes(output: Variable, logits: Float[np.ndarray, "*batch logit"]) -> Int[np.ndarray, "*batch"]:
    """The codes that logits stand for: the largest, as none is exactly 0 or 1 in superposition, or the number."""
    return logits.argmax(axis=-1) if output.encoding is Encoding.CATEGORICAL else nearest(output, logits)[0]


def compressed_by(compiled: CompiledModel, projection: Float[np.ndarray, "D d"], **more: Any) -> CompressedModel:
    """The compiled model behind a map.

    Args:
        compiled: The model.
        projection: The map.
        more: Where it comes from: `recipe`, `seed` and `history`.
    """
    return CompressedModel(narrow(compiled.transformer, projection), compiled, projection, **more)


def is_compressed(path: str | Path) -> bool:
    """Whether a file holds a compressed model."""
    try:
        return load_provenance(path).get("kind") == _KIND
    except StorageError:
        return False


def load_compressed(path: str | Path) -> CompressedModel:
    """The compressed model that `CompressedModel.save` wrote.

    Raises:
        StorageError: If the file is missing, truncated, edited, foreign, or holds no compressed program.
    """
    found = load_provenance(path)
    if not is_compressed(path):
        raise StorageError(f"{path} holds a model, but not a compressed program: it has no compression map.")
    made = load(path)
    with reading(path, "compressed program"):
        config, projection = Config.from_dict(found["config"]), np.array(found["projection"])
        if projection.shape != (config.d_model, made.config.d_model):
            raise RaspLensError(f"its map has the shape {projection.shape}")
        transformer = Transformer(config, _weights(found, config, made.config), made.mask)
        compiled = CompiledModel.of(anatomy_from_json(found["anatomy"], transformer))
        recipe = None if found["recipe"] is None else CompressionRecipe.from_dict(found["recipe"])
        history = tuple((step, output, layers) for step, output, layers in found["history"])
        return CompressedModel(made, compiled, projection, recipe, found["seed"], history)


def _weights(found: Mapping[str, Any], config: Config, made: Config) -> dict[str, np.ndarray]:
    """Return the weights of the compiled model, after checking their shapes."""
    if replace(config, d_model=made.d_model, identity_v=False, identity_o=False) != made:
        raise RaspLensError("its compiled and its compressed model differ in more than their width")
    shapes = {**weight_shapes(config), **bias_shapes(config)}
    dtype, stored = np.dtype(found["dtype"]), found["weights"]
    if wrong := [name for name, array in stored.items() if tuple(array["shape"]) != shapes.get(name)]:
        raise RaspLensError(f"{wrong[0]} has the shape {stored[wrong[0]]['shape']}")
    return {name: _dense(array, dtype) for name, array in stored.items()}


def _sparse(array: np.ndarray) -> Mapping[str, Any]:
    places = np.flatnonzero(array)
    return {"shape": array.shape, "places": places.tolist(), "values": array.ravel()[places].tolist()}


def _dense(stored: Mapping[str, Any], dtype: np.dtype) -> np.ndarray:
    array = np.zeros(int(np.prod(stored["shape"])), dtype)
    with np.errstate(over="ignore"):  # infinite weights are refused later, by Transformer
        array[stored["places"]] = stored["values"]
    return array.reshape(stored["shape"])
