"""A compiled model on disk: how it is written and read, and what every such file is like."""
