"""How long a local Ray may take to start: its fixed 30 s are too short on a busy machine."""

from __future__ import annotations

from collections.abc import MutableMapping

_PATIENCE = {
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "600",
    # Ray gives its workers little of a busy machine; here they are what the machine is to do.
    "RAY_worker_niceness": "0",
}


def allow_slow_start(environment: MutableMapping[str, str]) -> None:
    """Let a Ray that is started with this environment take minutes; what a user has set stays.

    Call it before `ray.init`, and only if that starts a Ray: it would wait as long for a cluster that does not answer.
    """
    for name, value in _PATIENCE.items():
        environment.setdefault(name, value)
