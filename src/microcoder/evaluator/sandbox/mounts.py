"""The private root: the interpreter's libraries read-only, four devices, a small folder to write in, nothing else."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping

from microcoder.evaluator.sandbox.protocol import STDERR_FILE, STDIN_FILE, STDOUT_FILE
from microcoder.evaluator.sandbox.syscalls import make_mount_read_only, mount, pivot_into

_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_STAGES = ("/mnt", "/media", "/srv", "/proc")

SCRATCH_MODE = 0o1777
"""Of the scratch folder: its owner need not be who the programs run as."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
PACKAGES = "/packages"


def scratch_folder(libraries: Iterable[str]) -> str:
    """Return where programs may write: /tmp, unless the interpreter itself lives there."""
    return "/box" if any(path.startswith("/tmp/") for path in libraries) else "/tmp"


def enter_private_root(
    libraries: Iterable[str],
    hidden: Iterable[str],
    packages: str,
    scratch_mib: int,
    links: Mapping[str, str],
    texts: Mapping[str, str],
) -> None:
    """Build the root in a mount namespace of our own and move into it.

    Args:
        libraries: folders that stay readable under their own paths.
        hidden: folders inside them that look empty.
        packages: folder of third-party packages, readable as `PACKAGES`; empty if there are none.
        scratch_mib: how much may be written in the scratch folder.
        links: further names, and what they lead to.
        texts: further files, and what is in them.
    """
    libraries = sorted(set(libraries))
    scratch = scratch_folder(libraries)
    # Where / is shared, as systemd has it, what is mounted below would else appear in the host's namespace too.
    mount("none", "/", None, _REC | _PRIVATE)
    # Not above anything that is to be shown: clusters keep shared folders below /mnt.
    shown = (*libraries, packages)
    stage = next(s for s in _STAGES if os.path.isdir(s) and not any(p.startswith(s + "/") for p in shown))
    mount("tmpfs", stage, "tmpfs", _NOSUID | _NODEV, "size=256k,nr_inodes=512,mode=0755")
    os.mkdir(stage + scratch)
    size = f"size={scratch_mib}m,nr_inodes=256,mode={SCRATCH_MODE:o}"
    mount("tmpfs", stage + scratch, "tmpfs", _NOSUID | _NODEV | _NOEXEC, size)
    bound: list[str] = []
    for path in libraries:
        if os.path.islink(path):
            os.makedirs(os.path.dirname(stage + path), exist_ok=True)
            os.symlink(os.readlink(path), stage + path)
        elif not any(path.startswith(done + "/") for done in bound):
            _bind(path, stage + path, [h for h in hidden if h.startswith(path + "/")], stage)
            bound.append(path)
    if packages:
        _bind(packages, stage + PACKAGES, [], stage)
    os.mkdir(stage + "/dev")
    for device in DEVICES:
        with open(stage + device, "w"):
            pass
        mount(device, stage + device, None, _BIND)
        # What is written to a device does not care, but its mode, owner and times are the host's.
        _make_read_only(stage + device, has_devices=True)
    _name_streams(stage, scratch)
    _stand_in(stage, links, texts)
    mount("none", stage, None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)
    pivot_into(stage)
    os.chdir(scratch)


def _name_streams(stage: str, scratch: str) -> None:
    """Let the usual names of the standard streams lead to files that a test has where its program asks for them."""
    os.mkdir(stage + "/dev/fd")
    for number, (name, file) in enumerate((("stdin", STDIN_FILE), ("stdout", STDOUT_FILE), ("stderr", STDERR_FILE))):
        for link in (f"/dev/{name}", f"/dev/fd/{number}"):
            os.symlink(f"{scratch}/{file}", stage + link)
    os.makedirs(stage + "/proc/self")
    os.symlink("/dev/fd", stage + "/proc/self/fd")


def _stand_in(stage: str, links: Mapping[str, str], texts: Mapping[str, str]) -> None:
    """Put up what a runtime reads about itself and the machine; there is no /proc here but this one."""
    for name in (*links, *texts):
        os.makedirs(os.path.dirname(stage + name), exist_ok=True)
    for name, target in links.items():
        os.symlink(target, stage + name)
    for name, text in texts.items():
        with open(stage + name, "w") as file:
            file.write(text)


def _bind(source: str, target: str, hidden: Iterable[str], stage: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w"):
            pass
    mount(source, target, None, _BIND | _REC)
    # Before the tree becomes read-only, which then holds for these too.
    for path in hidden:
        mount("tmpfs", stage + path, "tmpfs", _NOSUID | _NODEV, "size=4k,nr_inodes=2,mode=0755")
    _make_read_only(target)


def _make_read_only(target: str, *, has_devices: bool = False) -> None:
    try:
        make_mount_read_only(target, has_devices=has_devices)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        # Kernels before 5.12: reaches this mount, not those below it, which keep the rights that they had.
        mount("none", target, None, _REMOUNT | _BIND | _RDONLY | _NOSUID | (0 if has_devices else _NODEV))
