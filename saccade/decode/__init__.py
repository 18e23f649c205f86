"""Writing token by token: the step that every search takes, greedy search, beam search, and `generate`."""
