"""The labelled calibration set, and the mapping that is fitted on it."""
