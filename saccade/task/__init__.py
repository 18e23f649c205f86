"""Tasks: what goes in, what comes out, and how good it is."""
