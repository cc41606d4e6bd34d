"""A root folder of the sandbox's own, in a mount namespace of its own.

It holds the interpreter's libraries read-only, four devices and a small folder to write in.
`enter_private_root` builds it and moves into it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from microcoder.judge.sandbox import kernel
from microcoder.judge.sandbox.protocol import STDERR_FILE, STDIN_FILE, STDOUT_FILE

# Flags of mount(2).
_RDONLY = 1
"""Nothing below the mount can be written."""
_NOSUID = 2
"""Programs below it run with no more rights than their caller has."""
_NODEV = 4
"""Devices below it cannot be used."""
_NOEXEC = 8
"""Nothing below it can be started."""
_REMOUNT = 32
"""Change the flags of a mount that exists."""
_BIND = 4096
"""Show an existing file or folder at another path."""
_REC = 16384
"""Also what is mounted below."""
_PRIVATE = 1 << 18
"""What is mounted here does not appear in other namespaces."""
_STAGES = ("/mnt", "/media", "/srv", "/proc")
"""Folders that every system has, over which the private root may be built."""

SCRATCH_MODE = 0o1777
"""Mode of the scratch folder, whose owner need not be the programs' user."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
"""Devices of the private root."""
PACKAGES = "/packages"
"""Folder of third-party packages in the private root."""
_STREAM_FILES = (("stdin", STDIN_FILE), ("stdout", STDOUT_FILE), ("stderr", STDERR_FILE))
"""The standard streams, in order of their descriptors: name, scratch file."""


def scratch_folder(libraries: Iterable[str]) -> str:
    """Return the path of the folder that programs may write to.

    It is /tmp, unless the interpreter itself is there.
    """
    is_taken = any(path.startswith("/tmp/") for path in libraries)
    return "/box" if is_taken else "/tmp"


def enter_private_root(
    libraries: Iterable[str], hidden: Iterable[str], packages: str, scratch_mib: int
) -> None:
    """Build the private root in a mount namespace of our own and move into it.

    Args:
        libraries: folders that stay readable under their own paths.
        hidden: folders inside them that look empty.
        packages: folder of third-party packages, readable as `PACKAGES`; empty if there are none.
        scratch_mib: size of the scratch folder.
    """
    libraries = sorted(set(libraries))
    scratch = scratch_folder(libraries)
    # Where / is shared, as systemd has it, what is mounted below would else appear in the host's
    # namespace too.
    kernel.mount("none", "/", None, _REC | _PRIVATE)
    stage = _choose_stage((*libraries, packages))
    kernel.mount("tmpfs", stage, "tmpfs", _NOSUID | _NODEV, "size=256k,nr_inodes=512,mode=0755")
    os.mkdir(stage + scratch)
    size = f"size={scratch_mib}m,nr_inodes=256,mode={SCRATCH_MODE:o}"
    kernel.mount("tmpfs", stage + scratch, "tmpfs", _NOSUID | _NODEV | _NOEXEC, size)
    _show_libraries(libraries, hidden, stage)
    if packages:
        _bind(packages, stage + PACKAGES, [], stage)
    os.mkdir(stage + "/dev")
    for device in DEVICES:
        _make_empty_file(stage + device)
        kernel.mount(device, stage + device, None, _BIND)
        # What is written to a device does not care, but its mode, owner and times are the host's.
        _make_read_only(stage + device, has_devices=True)
    _name_streams(stage, scratch)
    kernel.mount("none", stage, None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)
    kernel.pivot_into(stage)
    os.chdir(scratch)


def _choose_stage(shown: Iterable[str]) -> str:
    """Return the folder over which to build the private root.

    It is not above anything that is to be shown: clusters keep shared folders below /mnt.

    Args:
        shown: the paths that are to be shown.

    Raises:
        StopIteration: there is no such folder.
    """
    for stage in _STAGES:
        is_above = any(path.startswith(stage + "/") for path in shown)
        if os.path.isdir(stage) and not is_above:
            return stage
    raise StopIteration


def _show_libraries(libraries: Iterable[str], hidden: Iterable[str], stage: str) -> None:
    """Make libraries readable under their own paths in the private root."""
    bound: list[str] = []
    for path in libraries:
        if os.path.islink(path):
            os.makedirs(os.path.dirname(stage + path), exist_ok=True)
            os.symlink(os.readlink(path), stage + path)
            continue
        # Sorted, a folder comes before what is inside it.
        is_shown = any(path.startswith(folder + "/") for folder in bound)
        if not is_shown:
            hidden_inside = [folder for folder in hidden if folder.startswith(path + "/")]
            _bind(path, stage + path, hidden_inside, stage)
            bound.append(path)


def _make_empty_file(path: str) -> None:
    with open(path, "w"):
        pass


def _name_streams(stage: str, scratch: str) -> None:
    """Link the usual names of the standard streams to files in the scratch folder.

    A test has those files if its program names them.
    """
    targets = {"/proc/self/fd": "/dev/fd"}
    for number, (name, file) in enumerate(_STREAM_FILES):
        targets[f"/dev/{name}"] = f"{scratch}/{file}"
        targets[f"/dev/fd/{number}"] = f"{scratch}/{file}"
    for name, target in targets.items():
        os.makedirs(os.path.dirname(stage + name), exist_ok=True)
        os.symlink(target, stage + name)


def _bind(source: str, target: str, hidden: Iterable[str], stage: str) -> None:
    """Show a file or folder read-only at another path, without the folders hidden in it."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _make_empty_file(target)
    kernel.mount(source, target, None, _BIND | _REC)
    # Before the tree becomes read-only, which then holds for these too.
    size = "size=4k,nr_inodes=2,mode=0755"
    for path in hidden:
        kernel.mount("tmpfs", stage + path, "tmpfs", _NOSUID | _NODEV, size)
    _make_read_only(target)


def _make_read_only(target: str, *, has_devices: bool = False) -> None:
    try:
        kernel.make_mount_read_only(target, has_devices=has_devices)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        # Kernels before 5.12: reaches this mount, not those below it, which keep the rights that
        # they had.
        flags = _REMOUNT | _BIND | _RDONLY | _NOSUID
        if not has_devices:
            flags |= _NODEV
        kernel.mount("none", target, None, flags)
