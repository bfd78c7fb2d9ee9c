"""A device of one's own from a few measurements: which networks to measure, and what they correct."""
