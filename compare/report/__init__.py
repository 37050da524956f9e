"""A comparison for people: findings in sentences, figures, and one HTML page."""
