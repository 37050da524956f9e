"""The labelled calibration set, and what verdicts come to on it."""
