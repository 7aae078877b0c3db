"""Golden recordings of the responses of a server."""
