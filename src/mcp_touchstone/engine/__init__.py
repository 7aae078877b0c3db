"""Plan a run, start processes and schedule scenarios on them."""
