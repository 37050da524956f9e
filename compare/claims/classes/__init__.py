"""Classes of inputs: where a claim fails that holds everywhere else."""
