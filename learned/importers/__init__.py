"""Models from elsewhere: files of our own and state dicts of TransformerLens."""
