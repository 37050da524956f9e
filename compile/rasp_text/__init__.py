"""The RASP language as text, as Weiss et al. 2021 define it, read into our expressions."""

from rasplens.compile.rasp_text.reader import RaspFile, parse_rasp, read_rasp

__all__ = ["RaspFile", "parse_rasp", "read_rasp"]
