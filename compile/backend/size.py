"""How large a model will be, known from its layout before any of its weights is made."""

from dataclasses import dataclass

from rasplens.compile.backend.neurons import n_neurons
from rasplens.compile.backend.residual_layout import Layout, n_directions, sides_read
from rasplens.compile.backend.schedule import ATTENTION, Places, computed, n_layers
from rasplens.compile.errors import CompileError
from rasplens.compile.ir import AggregateNode, AttentionNode, EqualityNode, PredicateNode
from rasplens.compile.limits import CompileLimits
from rasplens.compile.rasp.input_space import InputSpace

BYTES = 4
"""Bytes of a weight in float32."""

AT_WORK = 8
"""Bytes of a number while a model is built."""

NAMED = 3
"""How many of the widest variables an error names."""


@dataclass(frozen=True)
class Size:
    """The bytes that a model takes.

    Attributes:
        embeddings: Of tokens, positions and the unembedding.
        heads: Of all heads, at most.
        neurons: Of all neurons.
        masks: Of the masks of all layers.
    """

    embeddings: int
    heads: int
    neurons: int
    masks: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.embeddings + self.heads + self.neurons + self.masks


def check_length(max_len: int, limits: CompileLimits) -> None:
    """Refuses sequences so long that a table over their positions would not fit.

    Raises:
        CompileError: With the size of such a table.
    """
    if AT_WORK * max_len**2 > limits.max_bytes:
        raise CompileError(
            f"max_len={max_len:,} needs tables of {max_len:,} × {max_len:,} positions: "
            f"{_in_words(AT_WORK * max_len**2)}, and the limit is {_in_words(limits.max_bytes)}. Give a smaller "
            "max_len, or raise max_bytes of CompileLimits."
        )


def check_size(layout: Layout, places: Places, inputs: InputSpace, limits: CompileLimits) -> None:
    """Refuses a model that would take too much memory.

    Raises:
        CompileError: With what takes the most, and what would make it smaller.
    """
    widest = max(len(layout.graph.variable(i).values) for i in layout.written)
    at_work = AT_WORK * max(layout.d_model, widest) ** 2  # one matrix that reads or encodes
    if at_work > limits.max_bytes or (at_work := predicted_size(layout, places, inputs).total) > limits.max_bytes:
        raise CompileError(
            f"The model needs {_in_words(at_work)}, and the limit is {_in_words(limits.max_bytes)}: a residual "
            f"stream of {layout.d_model:,} directions, most of them for {_widest(layout)}. Reduce the "
            "vocabulary or max_len, wrap numbers in numerical(...), optimise, or raise max_bytes of CompileLimits."
        )


def predicted_size(layout: Layout, places: Places, inputs: InputSpace) -> Size:
    """The bytes of the weights and masks that a layout needs; of heads, at most."""
    depth, n_ctx = n_layers(places), inputs.max_len + (layout.bos is not None)
    n_heads, d_mlp, d_head = [0] * depth, [0] * depth, 1
    for variable, layer, kind in computed(layout, places):
        if kind == ATTENTION:
            n_heads[layer] += _n_heads(variable, layout)
            d_head = max(d_head, _head_width(variable, layout))
        else:
            d_mlp[layer] += n_neurons(variable, layout)
    tokens = len(inputs.vocab) + (layout.bos is not None) + (layout.pad is not None)
    widths = tokens + n_ctx + n_directions(layout.graph.variable(layout.graph.output))
    return Size(
        embeddings=BYTES * layout.d_model * widths,
        heads=BYTES * depth * 4 * max(1, *n_heads) * layout.d_model * d_head,
        neurons=BYTES * depth * 2 * max(d_mlp) * layout.d_model,
        masks=depth * n_ctx**2,
    )


def _n_heads(variable: int, layout: Layout) -> int:
    node = layout.graph.variable(variable)
    return len(node.inputs) // 2 if isinstance(node, AggregateNode) else 1


def _head_width(variable: int, layout: Layout) -> int:
    """The most that queries and keys, or values, of a head may take."""
    node = layout.graph.variable(variable)
    if not isinstance(node, AttentionNode):
        raise TypeError(f"{node.name!r} is computed by no head")
    selectors = node.inputs[::2]
    predicates = [part for selector in selectors for part in layout.graph.predicates(selector)]
    scores = 1 + sum(_columns(part, layout) for part in predicates)
    written = sum(layout.slices[part].stop - layout.slices[part].start for part in layout.written[variable])
    return max(scores, written)


def _columns(part: PredicateNode, layout: Layout) -> int:
    """The most columns that tell whether a predicate holds: one where one side alone decides."""
    if not all(sides_read(part, layout.graph)):
        return 1
    if isinstance(part, EqualityNode):
        return part.key_codes.shape[1]
    return min(len(layout.graph.variable(i).values) for i in part.inputs[:2]) + 1


def _widest(layout: Layout) -> str:
    widths = {layout.graph.nodes[i].name: part.stop - part.start for i, part in layout.slices.items()}
    names = sorted(widths, key=lambda name: -widths[name])[:NAMED]
    return ", ".join(f"{name!r} ({widths[name]:,})" for name in names)


def _in_words(size: int) -> str:
    """A number of bytes, in the largest unit that it fills."""
    exponent = min(3, max(0, (size.bit_length() - 1) // 10))
    return f"{size / 2 ** (10 * exponent):,.1f} {('bytes', 'KiB', 'MiB', 'GiB')[exponent]}"
