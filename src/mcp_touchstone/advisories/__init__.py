"""Published advisories on MCP software, as data, and the rules that show their faults."""
