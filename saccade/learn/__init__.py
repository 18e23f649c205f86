"""Learning: the loop, its optimisers and schedules, and what a run needs to go on after anything."""
