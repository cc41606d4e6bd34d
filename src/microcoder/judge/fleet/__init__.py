"""Who runs programs where: `judge` on this machine, its processes, clients of services, a Ray cluster."""
