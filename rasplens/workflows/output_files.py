"""Where commands write to."""

from pathlib import Path

from rasplens.errors import RaspLensError


def check_file(out: Path, example: str) -> None:
    """Raises where no file can be written: before the work, not after.

    Args:
        out: The file.
        example: What it could be called, if it is a folder.

    Raises:
        RaspLensError: If it is a folder, or in none.
    """
    if out.is_dir():
        raise RaspLensError(f"{out} is a folder. Name a file in it, such as {out / example}.")
    if not out.resolve().parent.is_dir():
        raise RaspLensError(f"Cannot write {out}: the folder {out.parent} does not exist. Create it first.")
