"""Where a variable of a program is in a model: methods that look for it, and their scores."""
