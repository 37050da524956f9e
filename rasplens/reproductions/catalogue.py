"""Every published model, by the name it has on the command line."""

from collections.abc import Mapping

from rasplens.reproductions.compressing import NARROW, THREE_LAYERS, TWO_LAYERS
from rasplens.reproductions.copying import COPY, COPY_SMEARED
from rasplens.reproductions.reproduction import Reproduction
from rasplens.reproductions.sorting import SORT

REPRODUCTIONS: Mapping[str, Reproduction] = {
    entry.name: entry for entry in (SORT, TWO_LAYERS, THREE_LAYERS, NARROW, COPY, COPY_SMEARED)
}
"""Every published model, by the name it has on the command line."""
