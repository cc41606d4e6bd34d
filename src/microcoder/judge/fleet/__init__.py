"""Where programs run: on this machine (`judge`, its processes), at services, on a Ray cluster."""
