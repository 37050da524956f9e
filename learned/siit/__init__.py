"""Strict interchange-intervention training: transformers of ordinary shape whose nodes compute a program."""
