"""The model under study on a task's inputs, its vocabulary, and its pairing with the compiled model."""
