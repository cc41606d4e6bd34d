"""Become what a container's process is, then run a command:
`python -m judge.container PLACE UID COMMAND ...`.

PLACE is a comma-separated list: `default` refuses what the default profile of Docker and of
Kubernetes refuses (namespaces, mounts), `no-landlock` the calls of Landlock, `no-mounts` grants
namespaces but no mount, as gVisor does. Root keeps no capability, with `docker-root` those of
Docker's root.
"""

import errno
import os
import struct
import sys

from microcoder.judge.sandbox.kernel import (
    PR_CAPBSET_DROP,
    PR_SET_NO_NEW_PRIVS,
    SeccompFilter,
    prctl,
)

# Numbers of x86_64.
_NAMESPACES = {272: errno.EPERM, 308: errno.EPERM, 435: errno.ENOSYS}
_MOUNTS = dict.fromkeys((165, 166, 155, 161, 428, 429, 430, 432, 442), errno.EPERM)
_OTHERS = dict.fromkeys((248, 249, 250, 298, 321, 323, 425), errno.EPERM)
_LANDLOCK = dict.fromkeys((444, 445, 446), errno.ENOSYS)
_GVISOR_MOUNT = {165: errno.EINVAL}
_CLONE = 56
_CLONE_NEW_ANYTHING = 0x7E020000
_DOCKERS_CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}
_NUM_CAPABILITIES = 64
_LOAD = 0x20
_IF_EQUAL = 0x15
_IF_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_ERROR = 0x00050000


def build_filter(places: set[str]) -> bytes:
    """Return the filter of system calls."""
    refused = {
        **(_NAMESPACES | _MOUNTS | _OTHERS if "default" in places else {}),
        **(_GVISOR_MOUNT if "no-mounts" in places else {}),
        **(_LANDLOCK if "no-landlock" in places else {}),
    }
    rules = [(_LOAD, 0, 0, 0)]
    for number, error in refused.items():
        rules += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | error)]
    if "default" in places:
        rules += [
            (_IF_EQUAL, 0, 3, _CLONE),
            (_LOAD, 0, 0, 16),
            (_IF_ANY_BIT, 0, 1, _CLONE_NEW_ANYTHING),
        ]
        rules += [(_RETURN, 0, 0, _ERROR | errno.EPERM)]
    rules.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *rule) for rule in rules)


def become(places: set[str], user: int) -> None:
    """Give up what such a process does not have."""
    kept = _DOCKERS_CAPABILITIES if "docker-root" in places else set()
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    else:
        for capability in range(_NUM_CAPABILITIES):
            try:
                if capability not in kept:
                    prctl(PR_CAPBSET_DROP, capability)
            except OSError:
                break
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    SeccompFilter(build_filter(places)).install()


if __name__ == "__main__":
    become(set(sys.argv[1].split(",")), int(sys.argv[2]))
    os.execv(sys.argv[3], sys.argv[3:])
