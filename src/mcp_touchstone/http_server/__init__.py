"""One base of an HTTP server: requests within limits, responses, streams of events."""
