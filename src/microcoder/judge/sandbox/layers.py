"""The layers of isolation, by name: shared by both sides."""

from __future__ import annotations

MOUNT_NAMESPACE = "mount_namespace"
PID_NAMESPACE = "pid_namespace"
NETWORK_NAMESPACE = "network_namespace"
IPC_NAMESPACE = "ipc_namespace"
UTS_NAMESPACE = "uts_namespace"
UNPRIVILEGED_USER = "unprivileged_user"
NO_CAPABILITIES = "no_capabilities"
NO_NEW_PRIVILEGES = "no_new_privileges"
NOT_DUMPABLE = "not_dumpable"
LANDLOCK = "landlock"
SECCOMP = "seccomp"
RESOURCE_LIMITS = "resource_limits"

LAYERS = (
    MOUNT_NAMESPACE,
    PID_NAMESPACE,
    NETWORK_NAMESPACE,
    IPC_NAMESPACE,
    UTS_NAMESPACE,
    UNPRIVILEGED_USER,
    NO_CAPABILITIES,
    NO_NEW_PRIVILEGES,
    NOT_DUMPABLE,
    LANDLOCK,
    SECCOMP,
    RESOURCE_LIMITS,
)
"""In the order in which they are put on."""
