"""Passes over selectors: what a head reads, compares and counts."""
