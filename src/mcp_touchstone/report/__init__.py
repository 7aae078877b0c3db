"""Reports: the results of a run, formatted for people and programs. Runs nothing."""
