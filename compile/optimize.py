"""The optimiser: passes that make a finite graph smaller without changing what it computes.

Each pass is a pure function from a graph to a graph and stands alone; `optimize` runs the chosen ones in
the order of `PASSES`. What the residual stream makes of the graph (views instead of directions) is the
business of `residual.lay_out`, which counts as one more pass, "fold".
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rasplens.compile import graph as ops
from rasplens.compile.equality import as_number, exact, value_key
from rasplens.compile.graph import Node
from rasplens.compile.inputs import InputSpace
from rasplens.compile.rasp import Encoding
from rasplens.compile.residual import is_view
from rasplens.compile.trace import recode, trace
from rasplens.compile.values import UNDEFINED, Domain, Finite, FiniteNode, coder, finish, make_domain

REACHED_LIMIT = 20_000
"""Input spaces of at most this many sequences are run in full to see which values occur."""

FACTORS = (1, -1, 2, -2, 3, -3)
"""Of the second argument of a function, tried for a linear form that the function depends on alone."""


def optimize(finite: Finite, space: InputSpace, passes: Collection[str]) -> Finite:
    """The graph after the chosen passes, in the order of `PASSES`."""
    for name, run in PASSES.items():
        if name in passes:
            finite = run(finite, space)
    return finite


@dataclass
class _Rewriting:
    """A graph as it is rebuilt, node by node."""

    nodes: list[FiniteNode] = field(default_factory=list)
    new_id: dict[int, int] = field(default_factory=dict)

    def add(self, node: FiniteNode) -> int:
        """The id of a further node."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def so_far(self) -> Finite:
        """The nodes up to here."""
        return Finite(tuple(self.nodes), 0, {})


Change = Callable[[int, FiniteNode, _Rewriting], int]
"""From a node whose inputs are rewritten already (and its old id) to the id of what takes its place."""


def _rewrite(finite: Finite, change: Change) -> Finite:
    rewriting = _Rewriting()
    for i, node in enumerate(finite.nodes):
        inputs = tuple(rewriting.new_id[source] for source in node.inputs)
        rewriting.new_id[i] = change(i, replace(node, inputs=inputs), rewriting)
    names = {name: rewriting.new_id[i] for name, i in finite.names.items()}
    return Finite(tuple(rewriting.nodes), rewriting.new_id[finite.output], names)


def reached(finite: Finite, space: InputSpace) -> Finite:
    """Without values that no input reaches, where the inputs can be enumerated.

    A variable is then as wide as it need be, a function of two knows which pairs meet, and a selector
    that never comes out empty needs no BOS.
    """
    if space.size > REACHED_LIMIT:
        return finite
    if any(trace(finite, ids, space.visible).fails().any() for ids in space.all_ids()):
        return finite  # where the program has no value, the model is to notice
    seen = [np.zeros(0 if node.is_selector else len(node.values) + 1, dtype=bool) for node in finite.nodes]
    met = {i: np.zeros_like(node.table, dtype=bool) for i, node in enumerate(finite.nodes) if node.met is not None}
    may_be_empty = np.zeros(len(finite.nodes), dtype=bool)
    for ids in space.all_ids():
        found = trace(finite, ids, space.visible)
        sees = found.visible.any(axis=1)
        for i, node in enumerate(finite.nodes):
            if node.is_selector:
                may_be_empty[i] |= bool((~found.selected[i].any(axis=-1) & sees).any())
                continue
            seen[i][found.codes[i]] = True
            if i in met:
                met[i][tuple(found.codes[source] for source in node.inputs)] = True
    return _restricted(finite, seen, met, may_be_empty)


def _restricted(
    finite: Finite, seen: Sequence[np.ndarray], met: dict[int, np.ndarray], may_be_empty: np.ndarray
) -> Finite:
    """The graph over the values that were seen."""
    kept = [np.append(np.flatnonzero(mask[:-1]), len(mask) - 1) if len(mask) else mask for mask in seen]

    def change(i: int, node: FiniteNode, rewriting: _Rewriting) -> int:
        old = finite.nodes[i]
        axes = np.ix_(*(kept[source] for source in old.inputs)) if node.table is not None else ()
        if isinstance(node.op, ops.Match | ops.MatchBest):
            assert node.table is not None
            axes = np.ix_(*(kept[source] for source in old.inputs[:2]))
            return rewriting.add(
                replace(node, table=node.table[axes], raises={}, may_be_empty=bool(may_be_empty[i]))
            )
        if node.is_selector:
            return rewriting.add(replace(node, may_be_empty=bool(may_be_empty[i])))
        if len(kept[i]) == 1:  # never defined, but still there: keep one value for its encoding
            kept[i] = np.array([0, len(seen[i]) - 1])
        values = tuple(node.values[code] for code in kept[i][:-1])
        domain = Domain(values, bool(seen[i][-1]))
        fallbacks = node.fallbacks
        if isinstance(node.op, ops.Gather):
            selectors = [rewriting.nodes[selector] for selector in node.inputs[::2]]
            is_silent = any(s.may_be_empty for s in selectors) or _sees_nothing_somewhere(finite, i)
            fallbacks = fallbacks if is_silent else ()
        if node.table is None:
            return rewriting.add(replace(node, domain=domain, fallbacks=fallbacks, by_layout=None))
        new_code = np.full(len(old.values) + 1, UNDEFINED)
        new_code[kept[i][:-1]] = np.arange(len(values))
        return rewriting.add(
            replace(
                node, domain=domain, table=new_code[node.table[axes]], met=met[i][axes], raises={}, by_layout=None
            )
        )

    return _rewrite(finite, change)


def _sees_nothing_somewhere(finite: Finite, i: int) -> bool:
    """Whether a gather's fallback is for positions that see nothing, whatever the selector."""
    node = finite.nodes[i]
    return bool(node.fallbacks) and not any(finite.nodes[s].may_be_empty for s in node.inputs[::2])


def merge(finite: Finite, space: InputSpace) -> Finite:
    """With equal operations on equal inputs as one, however often the program spells them out."""
    known: dict[tuple, int] = {}

    def change(i: int, node: FiniteNode, rewriting: _Rewriting) -> int:
        key = _identity(node)
        if key not in known:
            known[key] = rewriting.add(node)
        return known[key]

    return _rewrite(finite, change)


def _identity(node: FiniteNode) -> tuple:
    """What makes two nodes one."""
    what: tuple[Any, ...] = (type(node.op),)
    if isinstance(node.op, ops.Linear):
        what = (ops.Linear, exact(node.op.fst_fac), exact(node.op.snd_fac))
    table = None if node.table is None else (node.table.shape, node.table.tobytes())
    values = None if node.domain is None else tuple(map(value_key, node.values))
    fallbacks = tuple(map(value_key, node.fallbacks))
    inputs = tuple(sorted(node.inputs)) if isinstance(node.op, ops.Both) else node.inputs
    return (*what, inputs, node.encoding, values, table, fallbacks)


def cast(finite: Finite, space: InputSpace) -> Finite:
    """With what is read as a number read through a number: fewer directions, if nothing else is read of it."""
    casts: dict[int, int] = {}

    def as_numerical(source: int, rewriting: _Rewriting) -> int:
        node = rewriting.nodes[source]
        if node.is_numerical:
            return source
        if source not in casts:
            casts[source] = rewriting.add(_mapped(node, source, f"{node.name} as numerical", Encoding.NUMERICAL))
        return casts[source]

    def change(i: int, node: FiniteNode, rewriting: _Rewriting) -> int:
        first = {ops.Linear: 0, ops.Gather: 0, ops.Choose: 1}.get(type(node.op))
        if first is None or not node.is_numerical:
            return rewriting.add(node)
        inputs = [
            source if position < first or rewriting.nodes[source].is_selector else as_numerical(source, rewriting)
            for position, source in enumerate(node.inputs)
        ]
        return rewriting.add(replace(node, inputs=tuple(inputs)))

    return _rewrite(finite, change)


def _mapped(source: FiniteNode, at: int, name: str, encoding: Encoding) -> FiniteNode:
    """The variable itself under another encoding."""
    node = Node(ops.Apply(as_number), (at,), name, encoding, source.expr)
    domain = make_domain(node, source.values, source.is_partial)
    code_of = coder(node, domain)
    table = np.array([*(code_of(as_number(value)) for value in source.values), UNDEFINED])
    return finish(node, domain=domain, table=table, met=np.ones(len(table), dtype=bool))


def fuse(finite: Finite, space: InputSpace) -> Finite:
    """With chains of maps, and functions of several maps of one variable, as one map of that variable."""
    roots: dict[int, tuple[int, np.ndarray]] = {}

    def change(i: int, node: FiniteNode, rewriting: _Rewriting) -> int:
        fused = _fused(node, rewriting, roots)
        new = rewriting.add(node if fused is None else fused)
        result = rewriting.nodes[new]
        if not result.is_selector and not result.is_numerical:
            if isinstance(result.op, ops.Apply) and len(result.inputs) == 1 and result.inputs[0] in roots:
                base, codes = roots[result.inputs[0]]
                assert result.table is not None
                roots[new] = base, result.table[codes]
            else:
                roots[new] = new, np.array([*range(len(result.values)), UNDEFINED])
        return new

    return _rewrite(finite, change)


def _fused(node: FiniteNode, rewriting: _Rewriting, roots: dict[int, tuple[int, np.ndarray]]) -> FiniteNode | None:
    """A node whose inputs all follow from one categorical variable, as a map of that; None if they do not."""
    if not isinstance(node.op, ops.Apply | ops.Choose | ops.Linear) or any(i not in roots for i in node.inputs):
        return None
    bases = {roots[i][0] for i in node.inputs}
    if len(bases) > 1 or (node.inputs == tuple(bases) and len(node.inputs) == 1):
        return None
    (base,) = bases
    source = rewriting.nodes[base]
    codes = _codes_of(node, [rewriting.nodes[i] for i in node.inputs], [roots[i][1] for i in node.inputs])
    occurring = codes if source.is_partial else codes[:-1]
    reached = np.unique(occurring[occurring != UNDEFINED])
    if not len(reached):
        return None
    new_code = np.full(len(node.values) + 1, UNDEFINED)
    new_code[reached] = np.arange(len(reached))
    domain = Domain(tuple(node.values[code] for code in reached), bool((occurring == UNDEFINED).any()))
    op = ops.Apply(_no_function, takes_none=bool(source.is_partial and codes[-1] != UNDEFINED))
    met = np.ones(len(codes), dtype=bool)
    met[-1] = source.is_partial
    return replace(
        node, op=op, inputs=(base,), domain=domain, table=new_code[codes], met=met, raises={}, by_layout=None
    )


def _codes_of(node: FiniteNode, inputs: Sequence[FiniteNode], codes: Sequence[np.ndarray]) -> np.ndarray:
    """The node's codes where its inputs have the given ones."""
    if isinstance(node.op, ops.Apply):
        assert node.table is not None
        return node.table[tuple(codes)]
    if isinstance(node.op, ops.Choose):
        truth = np.array([*(bool(value) for value in inputs[0].values), False])[codes[0]]
        first, second = (recode(source, node)[at] for source, at in zip(inputs[1:], codes[1:], strict=True))
        return np.where(codes[0] == UNDEFINED, UNDEFINED, np.where(truth, first, second))
    return _linear_codes(node, inputs, codes)


def _linear_codes(node: FiniteNode, inputs: Sequence[FiniteNode], codes: Sequence[np.ndarray]) -> np.ndarray:
    assert isinstance(node.op, ops.Linear)
    fst_fac, snd_fac = exact(node.op.fst_fac), exact(node.op.snd_fac)
    code_of = coder(node, node.domain)
    return np.array([
        UNDEFINED if UNDEFINED in (x, y)
        else code_of(as_number(fst_fac * exact(inputs[0].values[x]) + snd_fac * exact(inputs[1].values[y])))
        for x, y in zip(*codes, strict=True)
    ])  # fmt: skip


def _no_function(*values: object) -> None:
    raise AssertionError("a fused map is known by its table alone")


def route(finite: Finite, space: InputSpace) -> Finite:
    """With a choice between two gathers made by their selectors, where the condition is there in time.

    `Where(c, Aggregate(S, x), Aggregate(T, y))` is one variable that two heads write, the first attending
    only where c holds, the second only where it does not: no MLP is needed to choose.
    """
    uses = np.bincount([source for node in finite.nodes for source in node.inputs] + [finite.output, 0])

    def change(i: int, node: FiniteNode, rewriting: _Rewriting) -> int:
        if not isinstance(node.op, ops.Choose) or not _can_route(finite, finite.nodes[i], uses):
            return rewriting.add(node)
        condition, *branches = node.inputs
        inputs: list[int] = []
        for branch, wanted in zip(branches, (True, False), strict=True):
            selector, source = rewriting.nodes[branch].inputs
            inputs += [_only_where(condition, wanted, selector, rewriting), source]
        return rewriting.add(replace(node, op=ops.Gather(None), inputs=tuple(inputs), fallbacks=(None,)))

    return _rewrite(finite, change)


def _can_route(finite: Finite, node: FiniteNode, uses: np.ndarray) -> bool:
    condition, *branches = (finite.nodes[i] for i in node.inputs)
    gathers = [branch for branch in branches if isinstance(branch.op, ops.Gather) and len(branch.inputs) == 2]
    return (
        len(gathers) == 2
        and all(uses[i] == 1 for i in node.inputs[1:])
        and all(branch.fallbacks in ((), (None,)) for branch in gathers)
        and all(isinstance(finite.nodes[branch.inputs[0]].op, ops.Match | ops.Both) for branch in gathers)
        and all(branch.encoding is node.encoding for branch in gathers)
        and not condition.is_partial
        and is_view(finite, node.inputs[0])
        and not finite.nodes[condition.inputs[0]].inputs
    )


def _only_where(condition: int, wanted: bool, selector: int, rewriting: _Rewriting) -> int:
    """The selector, of nothing where the condition is not as wanted."""
    node = rewriting.nodes[selector]
    truth = np.array([*(bool(value) is wanted for value in rewriting.nodes[condition].values), False])
    op = ops.Match(_no_function)  # type: ignore[arg-type]
    table = np.zeros((len(truth), len(truth)), dtype=bool)
    table[:-1] = truth  # of the query alone: the key is the condition too, only because every key has one
    name = f"{node.name} (gate)"
    reads = (condition, condition)
    gate = rewriting.add(replace(node, op=op, inputs=reads, name=name, table=table, raises={}, may_be_empty=True))
    parts = node.inputs if isinstance(node.op, ops.Both) else (selector,)
    return rewriting.add(
        replace(node, op=ops.Both(), inputs=(*parts, gate), table=None, raises={}, may_be_empty=True)
    )


def linear(finite: Finite, space: InputSpace) -> Finite:
    """With functions of two numbers that depend on a linear form alone as lookups in that form.

    `length - indices` takes neurons for every value of the difference, not for every pair.
    """

    def change(i: int, node: FiniteNode, rewriting: _Rewriting) -> int:
        found = _linear_form(node, [rewriting.nodes[source] for source in node.inputs])
        if found is None:
            return rewriting.add(node)
        factor, totals, codes = found
        terms = []
        for source in node.inputs:
            term = rewriting.nodes[source]
            mapped = _mapped(term, source, f"{term.name} as numerical", Encoding.NUMERICAL)
            terms.append(rewriting.add(mapped))
        form_node = Node(
            ops.Linear(1, factor), tuple(terms), f"{node.name} (linear form)", Encoding.NUMERICAL, node.expr
        )
        form = rewriting.add(finish(form_node, domain=Domain(tuple(totals), is_partial=False)))
        table = np.append(codes, UNDEFINED)
        return rewriting.add(
            replace(
                node, op=ops.Apply(_no_function), inputs=(form,), table=table, met=table >= UNDEFINED, raises={}
            )
        )

    return _rewrite(finite, change)


def _linear_form(node: FiniteNode, inputs: Sequence[FiniteNode]) -> tuple[int, list, np.ndarray] | None:
    """A factor of the second input, the totals in order and the node's code for each; None if none helps."""
    if not isinstance(node.op, ops.Apply) or len(inputs) != 2 or any(source.is_partial for source in inputs):
        return None
    values = [value for source in inputs for value in source.values]
    if not all(isinstance(value, bool | int) for value in values):
        return None
    assert node.table is not None
    assert node.met is not None
    x, y = (np.array([int(value) for value in source.values]) for source in inputs)
    met, table = node.met[:-1, :-1], node.table[:-1, :-1]
    best = None
    counts = np.bincount(table[met] + 1)
    pairs = min(int(counts[1:].sum()), int(counts.sum() - counts.max()) + min(len(x), len(y)))
    for factor in FACTORS:
        total = (x[:, None] + factor * y[None, :])[met]
        totals, first, at = np.unique(total, return_index=True, return_inverse=True)
        codes = table[met][first]
        if not (codes[at] == table[met]).all():
            continue
        neurons = 2 * int((codes[1:] != codes[:-1]).sum()) + 1
        if best is None or neurons < best[0]:
            best = neurons, factor, totals.tolist(), codes
    return best[1:] if best is not None and best[0] < pairs else None


def tidy(finite: Finite, space: InputSpace) -> Finite:
    """What the passes before have left to merge and to fuse."""
    return fuse(merge(finite, space), space)


def everything(finite: Finite, space: InputSpace) -> Finite:
    """Without predicates that always hold: a conjunction of none selects all that is seen, and reads nothing."""

    def change(i: int, node: FiniteNode, rewriting: _Rewriting) -> int:
        if isinstance(node.op, ops.Match) and _occurring(node, rewriting.nodes).all():
            return rewriting.add(replace(node, op=ops.Both(), inputs=(), table=None, raises={}))
        if isinstance(node.op, ops.Both):
            kept = tuple(part for part in node.inputs if not isinstance(rewriting.nodes[part].op, ops.Both))
            return rewriting.add(replace(node, inputs=kept)) if len(kept) != 1 else kept[0]
        return rewriting.add(node)

    return _rewrite(finite, change)


def _occurring(node: FiniteNode, nodes: Sequence[FiniteNode]) -> np.ndarray:
    """A predicate's table without the places for undefined where that does not occur."""
    assert node.table is not None
    return node.table[tuple(slice(len(nodes[i].values) + nodes[i].is_partial) for i in node.inputs[:2])]


def coarse(finite: Finite, space: InputSpace) -> Finite:
    """With keys and queries told apart only as far as the predicate tells them apart.

    A selector of vowels then reads whether a key is one, and not which letter it is; and keys that are
    never selected are as good as undefined.
    """

    def change(i: int, node: FiniteNode, rewriting: _Rewriting) -> int:
        if not isinstance(node.op, ops.Match | ops.MatchBest):
            return rewriting.add(node)
        assert node.table is not None
        table, inputs = node.table, list(node.inputs)
        for axis in (0, 1):
            table = table.swapaxes(0, axis)
            merged = _merged(node, inputs[axis], table, rewriting)
            if merged is not None:
                inputs[axis], table = merged
            table = table.swapaxes(0, axis)
        return rewriting.add(replace(node, inputs=tuple(inputs), table=table, raises={}))

    return _rewrite(finite, change)


def _merged(node: FiniteNode, at: int, table: np.ndarray, rewriting: _Rewriting) -> tuple[int, np.ndarray] | None:
    """A variable that is read along the first axis of a table, by kinds of equal rows; None if all differ.

    The kind of an undefined value, or if those do not occur of rows that are nowhere true, is undefined.
    """
    source = rewriting.nodes[at]
    if source.is_partial and table[-1].any():
        return None
    kinds, first, kind = np.unique(table[:-1], axis=0, return_index=True, return_inverse=True)
    codes = np.full(len(source.values) + 1, UNDEFINED)
    order = np.argsort(first)
    shown = [k for k in order.tolist() if kinds[k].any()]
    if not shown or len(shown) == len(source.values):
        return None
    for new, k in enumerate(shown):
        codes[:-1][kind.ravel() == k] = new
    view = Node(ops.Apply(_no_function), (at,), f"{source.name} (kind)", Encoding.CATEGORICAL, node.expr)
    met = np.append(np.ones(len(source.values), dtype=bool), source.is_partial)
    domain = Domain(tuple(range(len(shown))), bool((codes[met] == UNDEFINED).any()))
    new = rewriting.add(finish(view, domain=domain, table=codes, met=met))
    return new, np.concatenate([kinds[shown], np.zeros_like(table[-1:])])


def used(finite: Finite, space: InputSpace) -> Finite:
    """Without what the output does not depend on, except for named views of what it does."""
    needed = {finite.output, 0}
    for i in reversed(range(len(finite.nodes))):
        if i in needed:
            needed.update(finite.nodes[i].inputs)
    for i in finite.names.values():
        if is_view(finite, i) and all(source in needed for source in finite.nodes[i].inputs):
            needed.add(i)
    new_id = {old: new for new, old in enumerate(sorted(needed))}
    nodes = [
        replace(finite.nodes[old], inputs=tuple(new_id[i] for i in finite.nodes[old].inputs)) for old in new_id
    ]
    names = {name: new_id[i] for name, i in finite.names.items() if i in new_id}
    return Finite(tuple(nodes), new_id[finite.output], names)


PASSES: dict[str, Callable[[Finite, InputSpace], Finite]] = {
    "reached": reached,
    "merge": merge,
    "cast": cast,
    "fuse": fuse,
    "route": route,
    "linear": linear,
    "everything": everything,
    "coarse": coarse,
    "tidy": tidy,
    "used": used,
}
"""The passes over the graph, in order; see their docstrings."""

FOLD = "fold"
"""The pass over the layout: what is linear is a view, and takes no directions."""

ALL_PASSES = (*PASSES, FOLD)
