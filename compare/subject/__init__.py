"""The model under comparison: hooked, joined to a task by its vocabulary, with what may be done to it."""
