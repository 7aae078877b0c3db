"""What the security suite stands on: trees with canaries, bindings, payloads, oracles."""
