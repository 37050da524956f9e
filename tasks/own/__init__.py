"""Tasks of a user's own: from a template, a list of inputs, or a data file."""
