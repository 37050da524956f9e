"""Errors of training."""

from rasplens.errors import RaspLensError


class TrainingError(RaspLensError):
    """A training that cannot go on: its loss is infinite or NaN."""
