"""How the server is started, configured and watched."""
