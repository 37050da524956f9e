"""Reproductions of published documents: one entry for each, with their figures beside ours."""

from rasplens.reproductions.catalogue import REPRODUCTIONS
from rasplens.reproductions.reproduction import Finding, Reproduction

__all__ = ["REPRODUCTIONS", "Finding", "Reproduction"]
