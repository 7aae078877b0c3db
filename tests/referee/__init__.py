"""The reference server with what the official suite wants, and the suite itself.

The suite (npm, ``@modelcontextprotocol/conformance``) judges servers over HTTP, and only those that
have certain tools, resources and prompts by name. They are added to the reference server's own
protocol core as features, as an embedder would; nothing of the core is replaced.
"""
