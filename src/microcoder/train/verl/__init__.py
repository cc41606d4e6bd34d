"""verl on Ray, the engine on a cluster."""
