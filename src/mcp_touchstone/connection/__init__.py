"""The client side of a session. It sends and receives, and judges nothing."""
