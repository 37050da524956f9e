"""What a program claims of a model: each kind of claim, how it is tested, and how it is judged."""
