"""What every node of a graph can be: reachable values, tables, and their evaluation on many inputs at once."""
