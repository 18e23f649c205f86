"""Texts: the vocabulary, and what a text is as X, as Y after an X, and as one long stream."""
