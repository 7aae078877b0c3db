"""Processes, and the bytes sent to them and received from them."""
