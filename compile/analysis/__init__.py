"""Analysis of a graph: reachable values of every node, tables, and their evaluation on many inputs at once."""
