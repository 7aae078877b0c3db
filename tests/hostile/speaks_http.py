"""Answers everything as a web server does."""

import os, sys

for _ in sys.stdin.buffer:
    body = b"<html><body><h1>400 Bad Request</h1></body></html>"
    head = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(body)
    os.write(1, head + body + b"\r\n")
