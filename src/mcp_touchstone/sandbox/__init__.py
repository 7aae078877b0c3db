"""Commands in separate namespaces, and the files that they need there. Knows no MCP."""
