"""Models are put together here: embedding, blocks in stacks, a head."""
