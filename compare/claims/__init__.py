"""The claims of a program on a model: each kind of claim, how it is tested, and how it is judged."""
