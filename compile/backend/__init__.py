"""From a finite graph to weights: residual layout, attention heads, neurons, schedule, assembly."""
