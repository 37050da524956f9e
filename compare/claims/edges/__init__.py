"""Routes: whether information moves between positions in a model as a program says, tested edge by edge."""
