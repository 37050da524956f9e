"""Naturally trained models, and by their own script what they implement."""
