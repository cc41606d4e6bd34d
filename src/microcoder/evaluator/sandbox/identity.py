"""Who a program runs as: namespaces entered, user id and capabilities given up."""

from __future__ import annotations

import errno
import os

from microcoder.evaluator.sandbox import layers
from microcoder.evaluator.sandbox.syscalls import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    drop_bounding_capabilities,
    unshare,
)

_NAMESPACES = {
    layers.MOUNT_NAMESPACE: CLONE_NEWNS,
    layers.PID_NAMESPACE: CLONE_NEWPID,
    layers.NETWORK_NAMESPACE: CLONE_NEWNET,
    layers.IPC_NAMESPACE: CLONE_NEWIPC,
    layers.UTS_NAMESPACE: CLONE_NEWUTS,
}
_CAPABILITIES = {"CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}
_USER_BASES = ((1_000_000_000, 500_000_000), (20_000, 40_000), (65_534, 1))
"""First id and how many: far from real users where the user namespace reaches that far."""


def enter_namespaces(wanted: set[str]) -> tuple[dict[str, str], bool]:
    """Enter the wanted namespaces; return why each missing one is missing, and whether a user namespace was needed."""
    flags = {layer: flag for layer, flag in _NAMESPACES.items() if layer in wanted}
    if not flags:
        return {}, False
    needs_user_namespace = os.geteuid() != 0
    if not needs_user_namespace:
        missing = _unshare_each(flags)
        if len(missing) < len(flags):
            return missing, False
    try:
        _enter_user_namespace()
    except OSError as error:
        return dict.fromkeys(flags, f"no user namespace: {error}"), False
    return _unshare_each(flags), True


def _unshare_each(flags: dict[str, int]) -> dict[str, str]:
    missing = {}
    for layer, flag in flags.items():
        try:
            unshare(flag)
        except OSError as error:
            missing[layer] = str(error)
    return missing


def _enter_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    # The kernel takes a gid_map from an unprivileged user only after setgroups is denied: dropping a group would open
    # files whose mode shuts out its members.
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def pick_user(seed: int) -> int | None:
    """Return an unused, unprivileged user id, or None if the user namespace maps none."""
    with open("/proc/self/uid_map") as file:
        ranges = [tuple(map(int, line.split())) for line in file]
    for base, count in _USER_BASES:
        user = base + seed % count
        if any(first <= user < first + length for first, _, length in ranges):
            return user
    return None


def find_lacking_capabilities() -> list[str]:
    """Return what root lacks to hand everything to another user, and to end and clear away what that user leaves."""
    with open("/proc/self/status") as file:
        (held,) = (int(line.split()[1], 16) for line in file if line.startswith("CapEff:"))
    return [name for name, number in _CAPABILITIES.items() if not held >> number & 1]


def drop_user(user: int) -> None:
    """Become an unprivileged user for good."""
    # In this order: each step needs a capability that the last one gives up. All three ids, so that no saved one is
    # left to return to.
    drop_bounding_capabilities()
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def is_readable_by_others(path: str) -> bool:
    """Whether a user without rights of their own reaches a folder."""
    while True:
        try:
            if os.stat(path).st_mode & 0o005 != 0o005:
                return False
        except OSError as error:
            return error.errno != errno.EACCES
        if path == "/":
            return True
        path = os.path.dirname(path)
