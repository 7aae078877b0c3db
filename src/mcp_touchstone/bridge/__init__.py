"""A stdio server, served over streamable HTTP on loopback, so that HTTP-only clients can use it."""
