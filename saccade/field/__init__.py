"""Fields: what knows one kind of thing, as X, as Y or as both. One file a kind."""
