"""What the server asks and tells its client."""
