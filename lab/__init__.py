"""The laboratory: what measures, trains and labels for our own pages. It is no part of the package."""
