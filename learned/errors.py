"""What can go wrong in training."""


class TrainingError(ValueError):
    """A training that cannot go on: its loss is infinite or NaN."""
