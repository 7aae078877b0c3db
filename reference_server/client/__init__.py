"""The requests and notifications of the server to its client."""
