"""A build: one config, one command, from raw sources to a finished corpus."""
