"""Sets of elements as Y: matching, losses, the choice of what is found, each in a file of its own."""
