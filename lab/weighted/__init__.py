"""Weighted programs of the shipped models: sort, copy and compression."""
