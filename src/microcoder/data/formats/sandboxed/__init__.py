"""Programs that run in the sandbox, read as text; nothing of the package imports them."""
