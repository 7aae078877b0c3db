"""An authorization server on loopback, for servers under test that want a token.

It runs inside our own process and ends with it; its private keys are in memory only.
"""
