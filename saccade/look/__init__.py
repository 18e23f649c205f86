"""Watching without changing anything."""
