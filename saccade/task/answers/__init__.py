"""The answers, one file each; `kinds` is their table."""
