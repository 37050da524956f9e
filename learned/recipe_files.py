"""Recipes in files of their own, as TOML: the fields of a recipe, and a table `architecture`."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_type_hints

from rasplens.compile.rasp.values import LARGEST_WHOLE
from rasplens.errors import RaspLensError
from rasplens.learned.architecture import Architecture
from rasplens.learned.recipes import Recipe
from rasplens.learned.siit.recipe import SIITRecipe


def read_recipe(path: str | Path) -> Recipe:
    """The recipe of a file such as this one.

    ::

        batch_size = 256
        steps = 3000
        learning_rate = 0.01
        weight_decay = 0.01

        [architecture]
        n_layers = 1
        n_heads = 4
        d_model = 32
        d_head = 8

    Raises:
        RaspLensError: If there is no such file, it is not valid TOML, or a field is missing, unknown or of the
            wrong type.
    """
    values, shape = _read(path)
    given = values if shape is None else {**values, "architecture": shape}
    return Recipe(**_checked(given, Recipe, str(path)))


def read_siit_recipe(path: str | Path) -> tuple[SIITRecipe, Architecture | None]:
    """The recipe of a file with fields of `SIITRecipe`, and the shape in its table `architecture`, if it has one.

    Raises:
        RaspLensError: As for `read_recipe`, except that every field is optional.
    """
    values, shape = _read(path)
    return SIITRecipe(**_checked(values, SIITRecipe, str(path))), shape


def read_toml(path: str | Path) -> dict[str, Any]:
    """The values of a TOML file.

    Raises:
        RaspLensError: If it cannot be read, or is none.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RaspLensError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RaspLensError(f"{path} is not valid TOML: {error}.") from None
    except ValueError:  # of Python itself, which reads no number of so many digits
        raise RaspLensError(f"{path} cannot be read: one of its numbers has too many digits.") from None
    except RecursionError:
        raise RaspLensError(f"{path} cannot be read: its tables or lists are nested too deeply.") from None


def _read(path: str | Path) -> tuple[dict[str, Any], Architecture | None]:
    """Return the values of a recipe file, and separately its table `architecture`, if it has one."""
    values = read_toml(path)
    table = values.pop("architecture", None)
    if table is None:
        return values, None
    if not isinstance(table, dict):
        raise RaspLensError(f"{path}: `architecture` must be a table, [architecture].")
    return values, Architecture(**_checked(table, Architecture, f"{path}, [architecture]"))


def _checked(values: Mapping[str, Any], kind: type[Any], where: str) -> dict[str, Any]:
    """Return the checked values of a dataclass's fields; whole numbers become floats in float fields."""
    types, found = get_type_hints(kind), dict(values)
    if unknown := set(found) - set(types):
        raise RaspLensError(
            f"{where}: there is no field {sorted(unknown)[0]!r}. The fields are {', '.join(types)}."
        )
    for field in fields(kind):
        if field.name not in found:
            if field.default is MISSING:
                raise RaspLensError(f"{where}: the field {field.name!r} is missing.")
            continue
        value, wanted = found[field.name], types[field.name]
        if type(value) is int and abs(value) > LARGEST_WHOLE:
            raise RaspLensError(f"{where}: {field.name!r} must be at most {LARGEST_WHOLE:,} in size.")
        if wanted is float and type(value) is int:
            found[field.name] = float(value)
        elif type(value) is not wanted:
            raise RaspLensError(f"{where}: {field.name!r} must be of type {wanted.__name__}; got {value!r}.")
    return found
