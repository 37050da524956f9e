"""Methods of circuit discovery: each gives every edge of a model a score."""
