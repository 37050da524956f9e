"""What the output depends on."""

from dataclasses import replace

from rasplens.compile.analysis.domains import Finite
from rasplens.compile.analysis.views import is_view
from rasplens.compile.rasp.input_space import InputSpace


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
