"""The lab: studies of the paper's claims, and a benchmark of judges. Reads run directories only."""
