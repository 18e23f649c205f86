"""Tracks: where the agents of a scene were, step by step, and where they will be."""
