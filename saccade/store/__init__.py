"""Run folders: written whole or not at all, hashed, no pickle."""
