"""A compiled and a learned model on the same inputs, and what of the program can be asked there."""
