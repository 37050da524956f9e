"""A program as a part of a model: claims on how far interventions move the model's logits."""
