"""What is right: outputs and returned values against what was expected. Pure functions; `compare` is the way in."""
