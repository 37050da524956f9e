"""Trials of claims, and the classes of inputs that they are split by."""
