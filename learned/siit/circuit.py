"""Which node of a model is to compute which of a program's variables.

A node is a head, or the MLP of a layer. Of the compiled model, heads that gather for one variable are one part,
and all neurons of a layer are. Each part has a node of its own, by default in the same layer. Other nodes are
outside of the circuit.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rasplens.compile import CompiledModel
from rasplens.errors import RaspLensError
from rasplens.learned.architecture import Architecture
from rasplens.model import Config
from rasplens.model.hook_points import act_name
from rasplens.tasks import Task
from rasplens.tasks.compiling import check_compiled_for


def output_point(layer: int, of_heads: bool) -> str:
    """The hook point of what heads gather, or of what an MLP writes."""
    return act_name("z" if of_heads else "mlp_out", layer)


@dataclass(frozen=True, order=True)
class Node:
    """A head, or the MLP of a layer.

    Attributes:
        layer: Its layer.
        head: Its number there; -1 for the MLP.
    """

    layer: int
    head: int = -1

    @property
    def is_head(self) -> bool:
        """Whether it is a head."""
        return self.head >= 0

    @property
    def heads(self) -> tuple[int, ...]:
        """Its number in the layer, if it is a head."""
        return (self.head,) if self.is_head else ()

    @property
    def point(self) -> str:
        """The hook point of what it gives: what a head gathers, or what an MLP writes."""
        return output_point(self.layer, self.is_head)

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}" if self.is_head else f"L{self.layer} MLP"


@dataclass(frozen=True)
class CompiledPart:
    """The part of the compiled model that a node of a model stands for.

    Attributes:
        variables: The variables that it computes.
        layer: Its layer in the compiled model.
        heads: The compiled model's heads that do, by their numbers there; none of an MLP.
    """

    variables: tuple[str, ...]
    layer: int
    heads: tuple[int, ...] = ()

    @property
    def point(self) -> str:
        """The compiled model's hook point of what it gives."""
        return output_point(self.layer, bool(self.heads))

    def __str__(self) -> str:
        heads = " and ".join(str(Node(self.layer, head)) for head in self.heads)
        return f"{' and '.join(map(repr, self.variables))} ({heads or Node(self.layer)})"


Circuit = Mapping[Node, CompiledPart]


def circuit_of(compiled: CompiledModel) -> Circuit:
    """The nodes that compute a program's variables, each with what it stands for, in forward order."""
    found: dict[Node, CompiledPart] = {}
    for layer in range(compiled.transformer.config.n_layers):
        by_variable: dict[str, list[int]] = {}
        for (of_layer, head), name in sorted(compiled.heads.items()):
            if of_layer == layer:
                by_variable.setdefault(name, []).append(head)
        for place, (name, heads) in enumerate(by_variable.items()):
            found[Node(layer, place)] = CompiledPart((name,), layer, tuple(heads))
        names = [name for (of_layer, *_), name in sorted(compiled.neurons.items()) if of_layer == layer]
        if names:
            found[Node(layer)] = CompiledPart(tuple(dict.fromkeys(names)), layer)
    return found


def variables_by_node(circuit: Circuit) -> dict[str, list[str]]:
    """Return the variables that each node computes, in JSON values."""
    return {str(node): list(part.variables) for node, part in circuit.items()}


def stored_circuit(compiled: CompiledModel, shape: Config, variables: Mapping[str, list[str]]) -> Circuit | None:
    """The circuit of a stored model, whose variables are known by node; None if they are another program's."""
    nodes = {str(node): node for node in nodes_of(shape)}
    parts = {part.variables: part for part in circuit_of(compiled).values()}
    named = {name: tuple(own) for name, own in variables.items()}
    if not named.keys() <= nodes.keys() or sorted(named.values()) != sorted(parts):
        return None
    return {nodes[name]: parts[own] for name, own in named.items()}


def nodes_of(shape: Architecture | Config) -> list[Node]:
    """All nodes of a model, in forward order."""
    parts = (*range(shape.n_heads), *((-1,) if shape.d_mlp else ()))
    return [Node(layer, part) for layer in range(shape.n_layers) for part in parts]


def check_has_nodes(architecture: Architecture, circuit: Circuit) -> None:
    """Raises where an architecture lacks a node of a circuit.

    Raises:
        RaspLensError: With the first that it lacks.
    """
    there = nodes_of(architecture)
    if missing := [node for node in circuit if node not in there]:
        variables = " and ".join(map(repr, circuit[missing[0]].variables))
        raise RaspLensError(
            f"The architecture ({architecture}) has no {missing[0]}, which is to compute {variables}. Give it "
            "more layers, heads or neurons, or use `ordinary_architecture`."
        )


def check_has_parts(compiled: CompiledModel, circuit: Circuit) -> None:
    """Raises where a circuit does not have each part of a program once, heads at heads and neurons at MLPs.

    Raises:
        RaspLensError: With what it has, and what it should.
    """
    has, should = (sorted(map(str, one.values())) for one in (circuit, circuit_of(compiled)))
    if has != should:
        raise RaspLensError(
            f"The circuit has nodes for {', '.join(has) or 'nothing'}. It needs one node for each of "
            f"{', '.join(should)}, as in `circuit_of`."
        )
    if wrong := [node for node, part in circuit.items() if node.is_head != bool(part.heads)]:
        there, kind = wrong[0], "a head" if circuit[wrong[0]].heads else "an MLP"
        raise RaspLensError(f"{there} cannot compute {circuit[there]}, which needs {kind}.")


def check_trainable(compiled: CompiledModel, task: Task) -> None:
    """Raises if interchange-intervention training cannot work.

    Raises:
        RaspLensError: If the program computes nothing in a head or an MLP, answers are no single labels, or the
            compiled model is not of one of the task's programs.
    """
    if task.readout != "label":
        raise RaspLensError(
            f"SIIT needs a task whose answers are single labels; the readout of {task.name!r} is {task.readout!r}."
        )
    if not circuit_of(compiled):
        raise RaspLensError(
            f"{compiled.output!r} computes nothing in a head or an MLP: it has no circuit to train."
        )
    check_compiled_for(compiled, task)
