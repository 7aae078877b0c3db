"""Options from the command line, TOML and client configuration files."""
