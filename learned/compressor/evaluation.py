"""Evaluation of a compressed model: its answers, what its layers write, and which features share directions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import svd
from scipy.special import log_softmax
from scipy.stats import spearmanr

from rasplens.compile.rasp import Encoding
from rasplens.compile.variable import Variable, nearest
from rasplens.learned.compressor.compressed_model import CompressedModel, best_codes, compressed_by
from rasplens.learned.compressor.examples import Examples, examples
from rasplens.learned.compressor.projection import layer_outputs, principal_components, run_through
from rasplens.model.hook_points import act_name, activation_of, layer_of

DROPPED = 0.1
"""A feature of which less than this is read where it was written is dropped."""

SHARED = 0.3
"""Features whose rows have a cosine of more than this, in size, share directions."""

SILENT = 1e-9
"""A layer whose output is smaller than this writes nothing there."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A compressed model beside the compiled one, on all inputs or on a sample that it was not trained on.

    Attributes:
        n_inputs: How many inputs.
        exhaustive: Whether these are all that there are.
        token: The share of answers that are the compiled model's, in [0, 1]. Where a class is undefined there is
            no answer to be right: in superposition, no logit is exactly zero.
        sequence: The share of inputs with all answers right.
        output_loss: Of the answers: their cross-entropy in nats, or the squared error of a number.
        layers: One row per layer's output: columns point, loss (squared error, added up over directions), cosine
            (with the compiled model's output, its mean over the positions where that writes anything).
        variables: The same for each variable with directions of its own that a layer writes, on those alone;
            `one_direction`: the share of what tells its values apart that lies in one direction of the compressed
            stream; `ordered`: the rank correlation in size of the place along it with the value, NaN for names.
        features: One row per residual direction of the compiled model: columns feature, kept (how much of it is
            read where it was written), partner (the feature with whose row its own has the largest cosine),
            cosine, and fate: dropped, apart or shared.
    """

    n_inputs: int
    exhaustive: bool
    token: float
    sequence: float
    output_loss: float
    layers: pd.DataFrame
    variables: pd.DataFrame
    features: pd.DataFrame

    @property
    def cosine(self) -> float:
        """The mean over the layers' outputs."""
        return float(self.layers["cosine"].mean())

    @property
    def loss(self) -> float:
        """The squared errors of all layers' outputs, added up."""
        return float(self.layers["loss"].sum())

    def to_dict(self) -> dict[str, Any]:
        """Everything, in JSON values."""
        tables = {name: getattr(self, name) for name in ("layers", "variables", "features")}
        records = {name: frame.astype(object).where(frame.notna(), None) for name, frame in tables.items()}
        return {
            "n_inputs": self.n_inputs,
            "exhaustive": self.exhaustive,
            "token": self.token,
            "sequence": self.sequence,
            "output_loss": self.output_loss,
            "cosine": self.cosine,
            **{name: frame.to_dict("records") for name, frame in records.items()},
        }


def evaluate(model: CompressedModel, on: Examples | None = None) -> Evaluation:
    """How much a compressed model kept.

    Args:
        model: The model.
        on: The inputs; by default all of them, or a sample of too many.
    """
    on = on or examples(model.compiled)
    compiled = model.compiled
    wanted, got = (run_through(compiled, overlap, on) for overlap in (np.eye(len(model.overlap)), model.overlap))
    answered = on.real & (np.arange(on.real.shape[1]) >= compiled.offset)
    output = compiled.variables[compiled.output]
    codes = nearest(output, wanted["logits"])[0]
    if output.encoding is Encoding.CATEGORICAL:
        answered &= codes >= 0
    logits, codes = got["logits"][answered], codes[answered]
    whole = np.ones(on.real.shape, dtype=bool)
    whole[answered] = right = best_codes(output, logits) == codes
    points = layer_outputs(compiled.transformer.config.n_layers, compiled.transformer.config.attn_only)
    return Evaluation(
        n_inputs=len(on.tokens),
        exhaustive=on.exhaustive,
        token=float(right.mean()),
        sequence=float(whole.all(axis=1).mean()),
        output_loss=_output_loss(output, logits, codes, wanted["logits"][answered]),
        layers=pd.DataFrame(
            [{"point": point, **_likeness(wanted[point][on.real], got[point][on.real])} for point in points],
            columns=["point", "loss", "cosine"],
        ),
        variables=_variables(model, wanted, got, on),
        features=feature_table(model),
    )


def baseline(model: CompressedModel, on: Examples | None = None) -> CompressedModel:
    """The compiled model behind as many principal components of its residual stream."""
    on = on or examples(model.compiled)
    return compressed_by(model.compiled, principal_components(model.compiled, on, model.d))


def feature_table(model: CompressedModel) -> pd.DataFrame:
    """Return the fate of each residual direction of the compiled model; see `Evaluation.features`."""
    labels, overlap = model.labels, model.overlap
    kept = np.diag(overlap)
    sizes = np.sqrt(np.outer(kept, kept))
    cosines = np.where(sizes > SILENT, overlap / np.where(sizes > SILENT, sizes, 1), 0)
    np.fill_diagonal(cosines, 0)
    cosines[:, kept < DROPPED] = 0
    rows = []
    for i, label in enumerate(labels):
        partner = int(np.abs(cosines[i]).argmax())
        is_shared = abs(cosines[i, partner]) > SHARED
        fate = "dropped" if kept[i] < DROPPED else "shared" if is_shared else "apart"
        rows.append((label, kept[i], labels[partner], cosines[i, partner], fate))
    return pd.DataFrame(rows, columns=["feature", "kept", "partner", "cosine", "fate"])


def _output_loss(output: Variable, logits: np.ndarray, codes: np.ndarray, wanted: np.ndarray) -> float:
    if output.encoding is Encoding.NUMERICAL:
        return float(((logits - wanted) ** 2).sum(axis=-1).mean())
    return float(-np.take_along_axis(log_softmax(logits, axis=-1), codes[:, None], axis=-1).mean())


def _likeness(wanted: np.ndarray, got: np.ndarray) -> dict[str, float]:
    sizes = np.linalg.norm(wanted, axis=1) * np.linalg.norm(got, axis=1)
    writes = np.linalg.norm(wanted, axis=1) > SILENT
    cosines = np.where(sizes > SILENT, (wanted * got).sum(axis=1) / np.where(sizes > SILENT, sizes, 1), 0)
    loss = float(((wanted - got) ** 2).sum(axis=1).mean())
    return {"loss": loss, "cosine": float(cosines[writes].mean()) if writes.any() else np.nan}


def _variables(
    model: CompressedModel, wanted: dict[str, np.ndarray], got: dict[str, np.ndarray], on: Examples
) -> pd.DataFrame:
    rows = []
    for variable in model.compiled.variables.values():
        point = _writer(model, variable)
        if variable.is_view or point is None:
            continue
        own = variable.directions
        before, after = wanted[point][on.real][:, own], got[point][on.real][:, own]
        share, ordered = _one_direction(variable, before, after @ model.projection[own])
        rows.append(
            {
                "variable": variable.name,
                "point": point,
                **_likeness(before, after),
                "one_direction": share,
                "ordered": ordered,
            }
        )
    return pd.DataFrame(rows, columns=["variable", "point", "loss", "cosine", "one_direction", "ordered"])


def _writer(model: CompressedModel, variable: Variable) -> str | None:
    """The hook point of the layer's output that writes a variable; None for the embedding."""
    state, config = activation_of(variable.written_at), model.compiled.transformer.config
    if state == "resid_pre":
        return None
    is_of_mlp = state == "resid_post" and not config.attn_only
    return act_name("mlp_out" if is_of_mlp else "attn_out", layer_of(variable.written_at))


def _one_direction(variable: Variable, wanted: np.ndarray, written: np.ndarray) -> tuple[float, float]:
    """How much of what tells a variable's values apart lies in one direction, and whether they stand in order."""
    has_value = wanted.max(axis=1) > 0.5
    codes, written = wanted[has_value].argmax(axis=1), written[has_value]
    if variable.encoding is Encoding.NUMERICAL or len(found := np.unique(codes)) < 3:
        return np.nan, np.nan
    means = np.stack([written[codes == code].mean(axis=0) for code in found])
    centred = means - means.mean(axis=0)
    spread = (centred**2).sum()
    if spread < SILENT:
        return np.nan, np.nan
    _, sizes, directions = svd(centred, full_matrices=False)
    share = float(sizes[0] ** 2 / spread)
    values = [variable.values[code] for code in found]
    if not all(isinstance(value, int | float) for value in values):
        return share, np.nan
    return share, abs(float(spearmanr(centred @ directions[0], np.array(values, dtype=float)).statistic))
