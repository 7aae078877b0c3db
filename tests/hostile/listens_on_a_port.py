"""Listens on a port, as an HTTP server does, and reads none of its input."""

import socket, time

with socket.create_server(("127.0.0.1", 0)):
    time.sleep(60)
