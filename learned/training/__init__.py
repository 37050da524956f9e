"""One resumable training loop, and what it differentiates."""
