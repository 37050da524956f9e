"""Circuit discovery: methods that say which edges of a model matter, and their scores against the known truth."""
