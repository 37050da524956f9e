"""Displays of programs and compiled models: figures, tables, and notebooks."""
