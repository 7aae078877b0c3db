"""What clients and directories do with the lists of a server; never a verdict on the protocol."""
