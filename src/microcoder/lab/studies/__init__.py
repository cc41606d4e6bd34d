"""Studies and reports on runs, from run directories: they read files, never live objects."""
