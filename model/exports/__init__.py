"""Transformers in the weights of other libraries' models."""
