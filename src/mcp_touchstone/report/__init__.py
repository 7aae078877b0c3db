"""Results into what people and programs read. Runs nothing."""
