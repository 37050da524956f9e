"""The program that a model cannot be told from: searched head by head, and judged by claims."""
