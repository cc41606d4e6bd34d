"""Reports and studies over run directories."""
