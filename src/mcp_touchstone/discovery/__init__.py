"""Discovery: find the features of a server by using it."""
