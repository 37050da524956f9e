"""From expressions to the graph of primitive operations, and where a program is undefined."""
