"""Judge many servers: read a list, install and check each one apart, write a row for each."""
