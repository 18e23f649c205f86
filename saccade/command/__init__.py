"""The commands, a file for those that belong together. Nothing heavy is imported before one runs."""
