"""The lab: studies of the paper's claims, flawed graders, a benchmark of judges. Reads run directories only."""
