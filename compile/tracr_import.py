"""Imports from Tracr: its assembled models as transformers of ours, its expressions as our language.

Both are taken by their attributes alone; neither tracr nor haiku is imported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.language import PRIMITIVES
from rasplens.errors import RaspLensError
from rasplens.model import Config, Transformer, bidirectional_mask, causal_mask
from rasplens.model.hook_points import param_name


@dataclass(frozen=True, eq=False)
class TracrModel:
    """An assembled model of Tracr's; call it like the program.

    Attributes:
        transformer: The weights; its unembedding reads the output's directions.
        input_ids: The id of each token, the BOS and padding among them.
        bos: Tracr's BOS token, which comes before every sequence.
        output_values: What each logit stands for; None if the one logit is the number itself.
        residual_labels: What each direction of the residual stream is called.
    """

    transformer: Transformer
    input_ids: Mapping[Value, int]
    bos: Value
    output_values: tuple[Value, ...] | None
    residual_labels: tuple[str, ...]

    def encode(self, sequences: Sequence[Sequence[Value]]) -> np.ndarray:
        """Token ids, behind the BOS.

        Raises:
            RaspLensError: If a token is unknown, or the lengths differ.
        """
        if len({len(tokens) for tokens in sequences}) > 1:
            raise RaspLensError(
                "All sequences of a batch must have one length, as Tracr's models do not mask padding; got "
                f"lengths {sorted({len(tokens) for tokens in sequences})}."
            )
        if unknown := [token for tokens in sequences for token in tokens if token not in self.input_ids]:
            raise RaspLensError(f"Token {unknown[0]!r} is not in the vocabulary of the model.")
        return np.array([[self.input_ids[token] for token in (self.bos, *tokens)] for tokens in sequences])

    def __call__(self, tokens: Sequence[Value]) -> list[Value]:
        """Return the model's answer at every position; Tracr's models know no undefined values."""
        logits = self.transformer(self.encode([tokens]))[0, 1:]
        if self.output_values is None:
            return [float(number) for number in logits[:, 0]]
        return [self.output_values[code] for code in logits.argmax(axis=-1)]


def from_tracr(assembled: Any, output: str | None = None) -> TracrModel:
    """An `AssembledTransformerModel` of Tracr's as a transformer, numerical outputs included.

    Args:
        assembled: The model: its `params`, `model_config`, `residual_labels`, `input_encoder` and
            `output_encoder` are read.
        output: The name of the output among the residual labels; by default the last one written of
            those that the output encoder fits.

    Raises:
        RaspLensError: If the model has layer norm, or the output cannot be told.
    """
    config, params = assembled.model_config, assembled.params
    labels = tuple(assembled.residual_labels)
    if getattr(config, "layer_norm", False):
        raise RaspLensError("Models with layer norm are not supported; Tracr's own have none.")
    weights = {
        "embed.W_E": np.asarray(params["token_embed"]["embeddings"]),
        "pos_embed.W_pos": np.asarray(params["pos_embed"]["embeddings"]),
    }
    for layer in range(config.num_layers):
        weights |= _layer_weights(params, layer, config.num_heads)
    encoding = getattr(assembled.output_encoder, "encoding_map", None) or None
    values = None if encoding is None else tuple(sorted(encoding, key=lambda value: encoding[value]))
    columns = _output_columns(labels, values, weights, config.num_layers, output)
    weights["unembed.W_U"] = np.eye(len(labels))[:, columns]
    ours = Config(
        n_layers=config.num_layers,
        n_heads=config.num_heads,
        d_model=len(labels),
        d_head=config.key_size,
        n_ctx=len(weights["pos_embed.W_pos"]),
        d_vocab=len(weights["embed.W_E"]),
        d_vocab_out=len(columns),
        d_mlp=config.mlp_hidden_size,
    )
    mask = (causal_mask if config.causal else bidirectional_mask)(ours.n_layers, ours.n_ctx)
    single = {name: np.asarray(weight, dtype=np.float32) for name, weight in weights.items()}
    transformer = Transformer(ours, single, mask)
    encoder = assembled.input_encoder
    return TracrModel(
        transformer, dict(encoder.encoding_map), getattr(encoder, "bos_token", "BOS"), values, labels
    )


def _layer_weights(params: Mapping[str, Any], layer: int, n_heads: int) -> dict[str, np.ndarray]:
    """One layer: heads stand side by side in Tracr's linear layers."""
    found: dict[str, np.ndarray] = {}
    theirs = f"transformer/layer_{layer}"
    for letter, name in (("Q", "query"), ("K", "key"), ("V", "value")):
        part = params[f"{theirs}/attn/{name}"]
        found[param_name(f"W_{letter}", layer)] = np.stack(np.split(np.asarray(part["w"]), n_heads, axis=1))
        found[param_name(f"b_{letter}", layer)] = np.stack(np.split(np.asarray(part["b"]), n_heads))
    part = params[f"{theirs}/attn/linear"]
    found[param_name("W_O", layer)] = np.stack(np.split(np.asarray(part["w"]), n_heads, axis=0))
    found[param_name("b_O", layer)] = np.asarray(part["b"])
    for side, name in (("in", "linear_1"), ("out", "linear_2")):
        part = params[f"{theirs}/mlp/{name}"]
        found[param_name(f"W_{side}", layer)] = np.asarray(part["w"])
        found[param_name(f"b_{side}", layer)] = np.asarray(part["b"])
    return found


def _output_columns(
    labels: Sequence[str],
    values: tuple[Value, ...] | None,
    weights: Mapping[str, np.ndarray],
    n_layers: int,
    output: str | None,
) -> list[int]:
    """The directions of the output: of a number the one with its name, of classes one per value."""
    names = [label.rsplit(":", 1)[0] for label in labels]
    fitting = []
    for name in dict.fromkeys(names) if output is None else [output]:
        wanted = [name] if values is None else [f"{name}:{value}" for value in values]
        if set(wanted) <= set(labels) and name != "one":
            fitting.append([labels.index(label) for label in wanted])
    if not fitting:
        known = ", ".join(dict.fromkeys(names))
        raise RaspLensError(
            f"No residual labels fit {f'the output {output!r}' if output else 'any output'}; there are {known}."
        )
    written = [_last_written(columns, weights, n_layers) for columns in fitting]
    last = [columns for columns, at in zip(fitting, written, strict=True) if at == max(written)]
    if len(last) > 1:
        candidates = ", ".join(repr(names[columns[0]]) for columns in last)
        raise RaspLensError(f"Several variables could be the output: {candidates}. Name one as `output`.")
    return last[0]


def _last_written(columns: Sequence[int], weights: Mapping[str, np.ndarray], n_layers: int) -> int:
    """The last place that writes to some directions: attention and MLPs counted from 0; -1 for the embedding."""
    last = -1
    for layer in range(n_layers):
        for place, name in enumerate(("W_O", "W_out")):
            if np.asarray(weights[param_name(name, layer)])[..., list(columns)].any():
                last = 2 * layer + place
    return last


def from_tracr_program(expr: Any) -> rasp.RASPExpr:
    """An expression of Tracr's RASP as one of ours; shared expressions stay shared.

    Raises:
        TypeError: If it is no expression of Tracr's.
    """
    return _convert(expr, {})


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "Map": ("f", "inner"),
    "SequenceMap": ("f", "fst", "snd"),
    "LinearSequenceMap": ("fst", "snd", "fst_fac", "snd_fac"),
    "Full": ("fill",),
    "ConstantSOp": ("value", "check_length"),
    "Select": ("keys", "queries", "predicate"),
    "ConstantSelector": ("value", "check_length"),
    "SelectorAnd": ("fst", "snd"),
    "SelectorOr": ("fst", "snd"),
    "SelectorNot": ("inner",),
    "SelectorWidth": ("selector",),
    "Aggregate": ("selector", "sop", "default"),
}
"""The fields of Tracr's expressions, by class; ours have the same names."""


def _convert(expr: Any, known: dict[int, rasp.RASPExpr]) -> rasp.RASPExpr:
    if id(expr) in known:
        return known[id(expr)]
    kind = type(expr).__name__
    annotations = _annotations(expr)
    if kind in PRIMITIVES:
        if annotations.get("name") in ("tokens", "indices", "length"):  # Tracr names them from the start
            del annotations["name"]
        found = rasp.annotate(PRIMITIVES[kind], **annotations) if annotations else PRIMITIVES[kind]
    elif kind in _FIELDS:
        arguments = [_argument(getattr(expr, name), known) for name in _FIELDS[kind]]
        found = getattr(rasp, kind)(*arguments, annotations=annotations)
    else:
        raise TypeError(f"{expr!r} is not an expression of Tracr's RASP.")
    known[id(expr)] = found
    return found


def _argument(argument: Any, known: dict[int, rasp.RASPExpr]) -> Any:
    kind = type(argument).__name__
    if kind in _FIELDS or kind in PRIMITIVES:
        return _convert(argument, known)
    return rasp.ComparisonPredicate[argument.name] if kind == "Comparison" else argument


def _annotations(expr: Any) -> dict[str, Any]:
    """Its name and encoding; Tracr's other annotations have no meaning here."""
    given = dict(getattr(expr, "annotations", {}))
    found: dict[str, Any] = {}
    if given.get("name"):
        found["name"] = given["name"]
    if given.get("encoding") is not None:
        found["encoding"] = rasp.Encoding(given["encoding"].value)
    return found
