"""The layers of isolation, put on by the fork server before it runs programs.

The order matters: namespaces, private root, preloading, then giving up user id and capabilities,
and the filter of system calls last. A layer that the kernel refuses is noted with the reason; the
supervisor decides whether to go on. `isolate` puts on all but the last, `finish` the last.

The private root (`private_root`) holds the interpreter's libraries read-only, four devices and a
small folder to write in.
"""

from __future__ import annotations

import errno
import gc
import importlib
import os
import random
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from microcoder.judge.sandbox import (
    folders,
    kernel,
    limits,
    protocol,
    quota,
    runner,
    seccomp,
    warmup,
)
from microcoder.judge.sandbox.kernel import SeccompFilter, prctl
from microcoder.judge.sandbox.private_root import (
    DEVICES,
    PACKAGES,
    SCRATCH_MODE,
    enter_private_root,
    scratch_folder,
)
from microcoder.judge.sandbox.protocol import Layer

_NAMESPACES = {
    Layer.MOUNT_NAMESPACE: kernel.CLONE_NEWNS,
    Layer.PID_NAMESPACE: kernel.CLONE_NEWPID,
    Layer.NETWORK_NAMESPACE: kernel.CLONE_NEWNET,
    Layer.IPC_NAMESPACE: kernel.CLONE_NEWIPC,
    Layer.UTS_NAMESPACE: kernel.CLONE_NEWUTS,
}
"""Layer -> flag of unshare(2)."""
_CAPABILITIES = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
}
"""Capabilities that root needs to give a folder to another user and empty it: name -> number."""
_USER_BASES = ((1_000_000_000, 500_000_000), (20_000, 40_000), (65_534, 1))
"""Ranges of user ids (first id, number), far from real users.

The first that the user namespace maps is used.
"""


def enter_namespaces(wanted: set[str]) -> tuple[dict[str, str], bool]:
    """Enter the wanted namespaces.

    Return why each missing one is missing, and whether a user namespace was needed.
    """
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


def _unshare_each(flags: dict[Layer, int]) -> dict[str, str]:
    """Enter namespaces; return why each missing one is missing."""
    missing: dict[str, str] = {}
    for layer, flag in flags.items():
        try:
            kernel.unshare(flag)
        except OSError as error:
            missing[layer] = str(error)
    return missing


def _enter_user_namespace() -> None:
    user = os.geteuid()
    group = os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER)
    # The kernel takes a gid_map from an unprivileged user only after setgroups is denied: dropping
    # a group would open files whose mode shuts out its members.
    _write_own("setgroups", "deny")
    _write_own("uid_map", f"{user} {user} 1")
    _write_own("gid_map", f"{group} {group} 1")


def _write_own(name: str, text: str) -> None:
    """Write a file of this process in /proc."""
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


_READ_BY_OTHERS = 0o005
"""Rights of others to list a folder, and to enter it."""


def is_readable_by_others(path: str) -> bool:
    """Whether any user may list and enter a folder and all its parents."""
    while True:
        try:
            if os.stat(path).st_mode & _READ_BY_OTHERS != _READ_BY_OTHERS:
                return False
        except OSError as error:
            return error.errno != errno.EACCES
        if path == "/":
            return True
        path = os.path.dirname(path)


@dataclass
class Setup:
    """The isolation that is in force in this fork server."""

    wanted: set[str]
    """The layers that were asked for."""
    missing: dict[str, str] = field(default_factory=dict)
    """Layer -> why it is not in force."""
    in_user_namespace: bool = False
    """Whether we are in a user namespace of our own."""
    is_init: bool = False
    """Whether we are process 1 of our own pid namespace.

    Then `kill_everything` kills only tests.
    """
    owns_uid: bool = False
    """Whether nothing outside this sandbox runs under our user id."""
    scratch: str = ""
    """The folder that tests may write to."""
    scratch_mode: int = folders.PRIVATE_MODE
    """Mode of that folder."""
    file_rules: seccomp.FileRules = seccomp.PRIVATE_FILES
    """What the filter of system calls says about files."""
    asks_about_threads: bool = False
    """Whether the fork server counts threads.

    It does if tests have no user id of their own, by which the kernel could.
    """
    shared_filter: SeccompFilter | None = None
    """The filter of all Python tests, if they can share one."""

    def has(self, layer: str) -> bool:
        """Whether a layer is in force."""
        return layer in self.wanted and layer not in self.missing

    @property
    def asks(self) -> bool:
        """Whether the kernel asks the fork server about calls of a test.

        It does so that they can be counted (`quota`).
        """
        return self.file_rules.asks_about_entries or self.asks_about_threads

    def per_test_filter(self, *, is_binary: bool) -> SeccompFilter:
        """Return the filter of one test, to be installed by its own process."""
        if not is_binary and self.shared_filter is not None:
            return self.shared_filter
        rules = seccomp.per_test(
            None if self.is_init else os.getpid(),
            is_binary=is_binary,
            asks_about_threads=self.asks_about_threads,
            files=self.file_rules,
        )
        return SeccompFilter(rules)

    def report(self) -> dict[str, str]:
        """Return the layers that are not in force, with the reason."""
        absent = [layer for layer in protocol.LAYERS if not self.has(layer)]
        return {layer: self.missing.get(layer, "switched off") for layer in absent}

    def attempt(self, layer: str, action: Callable[[], object]) -> None:
        """Apply a layer of isolation, or record why it could not be."""
        if self.has(layer):
            try:
                action()
            except (OSError, StopIteration) as error:
                self.missing[layer] = f"{type(error).__name__}: {error}"


def isolate(config: dict[str, Any], control: socket.socket) -> Setup:
    """Apply every layer of isolation but the filter of system calls.

    Return what is in force.
    """
    prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    setup = Setup(wanted=set(config["layers"]))
    is_root = os.geteuid() == 0
    # Chosen by our process id, so before the pid namespace in which every sandbox has the same: two
    # that shared a user id would count against each other's limit on processes and, without that
    # namespace, could signal each other.
    user = pick_user(os.getpid()) if is_root else None
    setup.missing, setup.in_user_namespace = enter_namespaces(setup.wanted)
    if setup.has(Layer.PID_NAMESPACE):
        _become_init(control)
        setup.is_init = os.getpid() == 1
    elif config["builds"]:
        # What a compiler leaves running becomes our child, so that it can be found.
        prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    try:
        # In the session that programs will run in.
        limits.stand_back(config["nice"])
    except OSError as error:
        raise RuntimeError(
            f"its scheduler group cannot be made nice ({error}); start without nice"
        ) from None
    libraries = config["libraries"]
    packages = config["packages"]
    # Now, since the private root has no /proc.
    config["statm"] = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    setup.attempt(
        Layer.MOUNT_NAMESPACE,
        lambda: enter_private_root(libraries, config["hidden"], packages, config["scratch_mib"]),
    )
    if setup.has(Layer.MOUNT_NAMESPACE):
        setup.scratch = scratch_folder(libraries)
        setup.scratch_mode = SCRATCH_MODE
        if packages:
            packages = PACKAGES
    else:
        _take_private_folder(setup, config["folder"])
    package_folders = [packages] if packages else []
    _preload(config["preload"], package_folders)
    if is_root:
        _drop_user(setup, user, [config["stdlib"], *package_folders])
    _give_up_rights(setup)
    _restrict_files(setup, [*libraries, *package_folders], config)
    return setup


def _take_private_folder(setup: Setup, folder: str) -> None:
    """Without mounts, make a folder on the machine's disk to write to.

    Landlock confines programs to it.
    """
    problem = quota.find_problem()
    if problem:
        setup.missing[Layer.RESOURCE_LIMITS] = problem
    folders.make_private_folder(folder)
    setup.scratch = folder
    os.environ["TMPDIR"] = folder
    os.chdir(folder)


def _restrict_files(setup: Setup, readable: list[str], config: dict[str, Any]) -> None:
    """Confine this process to files, by Landlock and by the filter of system calls.

    Args:
        setup: the isolation so far.
        readable: paths that stay readable without a private root.
        config: the sandbox's configuration.
    """
    is_private = setup.has(Layer.MOUNT_NAMESPACE)
    builds = bool(config["builds"])
    setup.attempt(
        Layer.LANDLOCK,
        lambda: kernel.restrict(
            # A private root holds nothing else.
            readable=["/"] if is_private else readable,
            hidden=() if is_private else config["hidden"],
            writable=[setup.scratch],
            devices=DEVICES,
            executables=config["runtime"]["executables"],
            can_execute=builds,
        ),
    )
    if is_private:
        return
    has_landlock = setup.has(Layer.LANDLOCK)
    can_ask = not builds and setup.has(Layer.RESOURCE_LIMITS)
    setup.file_rules = seccomp.FileRules(
        is_shared=True,
        can_write=has_landlock or builds,
        can_truncate=has_landlock and kernel.version() >= kernel.SINCE_TRUNCATE,
        asks_about_entries=can_ask,
    )
    # The namespace's own processes have other numbers in the /proc that we could count them by.
    has_uncounted_threads = not setup.owns_uid and not setup.is_init
    setup.asks_about_threads = can_ask and has_uncounted_threads


def _become_init(control: socket.socket) -> None:
    """Fork process 1 of the new pid namespace; the parent only waits for it."""
    pid = os.fork()
    if pid:
        control.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _, status = os.waitpid(pid, 0)
        exit_code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1
        os._exit(exit_code)
    # A signal to the process group would reach the parent too, across the namespace, if it has the
    # same user.
    os.setsid()
    prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


def _preload(modules: list[str], package_folders: list[str]) -> None:
    """Import what programs import, with the same random state for every test."""
    import site

    sys.path += package_folders
    for name in modules:
        importlib.import_module(name)
    random.seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)
    # What -S left out: exit(), quit() and their like.
    site.setquit()
    site.setcopyright()
    site.sethelper()


def _drop_user(setup: Setup, user: int | None, own_folders: Sequence[str]) -> None:
    """Stop being root, unless programs could then not read what they import from these folders."""
    problem = _find_problem_with_user(setup, user, own_folders)
    if problem or user is None:
        setup.missing[Layer.UNPRIVILEGED_USER] = problem
        return
    setup.attempt(Layer.UNPRIVILEGED_USER, lambda: _become(setup, user))
    setup.owns_uid = setup.has(Layer.UNPRIVILEGED_USER)


def _find_problem_with_user(setup: Setup, user: int | None, own_folders: Sequence[str]) -> str:
    """Return why programs cannot run as another user than root; empty if they can."""
    # A namespace that could be made but not be given a map has left us without any id.
    if setup.in_user_namespace or user is None or os.geteuid() != 0:
        return "the user namespace maps no other user"
    for folder in own_folders:
        if not is_readable_by_others(folder):
            return f"{folder} is readable by root only"
    if setup.has(Layer.MOUNT_NAMESPACE):
        return ""
    return _find_problem_with_giving(setup.scratch)


def _find_problem_with_giving(folder: str) -> str:
    """Return why root cannot give a private folder to another user and empty it afterwards.

    Empty if it can.
    """
    if not is_readable_by_others(os.path.dirname(folder)):
        return f"{folder} is in a folder readable by root only"
    held = _read_capabilities()
    lacking = [name for name, number in _CAPABILITIES.items() if not held >> number & 1]
    return f"root lacks {', '.join(lacking)}" if lacking else ""


def _read_capabilities() -> int:
    """Return the capabilities in force, a bit each."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("CapEff:"):
                return int(line.split()[1], 16)
    raise ValueError("/proc/self/status has no CapEff")


def _become(setup: Setup, user: int) -> None:
    """Become an unprivileged user for good, and give a private folder to that user."""
    if not setup.has(Layer.MOUNT_NAMESPACE):
        os.chown(setup.scratch, user, user)
    # In this order: each step needs a capability that the last one gives up. All three ids, so that
    # no saved one is left to return to.
    kernel.drop_bounding_capabilities()
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _give_up_rights(setup: Setup) -> None:
    """Give up capabilities, and what could bring rights back."""
    kernel.drop_bounding_capabilities()
    setup.owns_uid = setup.owns_uid or setup.in_user_namespace
    setup.attempt(Layer.NO_CAPABILITIES, kernel.drop_capabilities)
    # No other process of the same user may trace us or read our memory.
    setup.attempt(Layer.NOT_DUMPABLE, lambda: prctl(kernel.PR_SET_DUMPABLE, 0))
    setup.attempt(Layer.NO_NEW_PRIVILEGES, lambda: prctl(kernel.PR_SET_NO_NEW_PRIVS, 1))
    # Once more: the kernel forgets it when a process changes its user id.
    prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


def finish(setup: Setup, config: dict[str, Any], run_test: warmup.RunTest) -> tuple[int, int]:
    """Rehearse by `run_test`, install seccomp, freeze the heap.

    Return this process's address space in bytes, and a fork's peak memory in KiB.
    """
    if Layer.SECCOMP in setup.wanted and not config["builds"]:
        setup.shared_filter = SeccompFilter.harmless()
        warmup.rehearse(run_test)
        setup.shared_filter = None
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    if Layer.SECCOMP in setup.wanted:
        rules = seccomp.allow_list(can_execute=bool(config["builds"]), can_ask=setup.asks)
        setup.attempt(Layer.SECCOMP, SeccompFilter(rules).install)
        if setup.is_init:
            setup.shared_filter = setup.per_test_filter(is_binary=False)
    _forget_ourselves()
    gc.collect()
    gc.freeze()
    pages = int(os.pread(config["statm"], 200, 0).split()[0])
    os.close(config["statm"])
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return pages * resource.getpagesize(), os.wait4(pid, 0)[2].ru_maxrss


def _forget_ourselves() -> None:
    """Remove this package from `sys.modules` and `sys.argv`, so that programs do not see it."""
    # Tidiness, not protection: `gc` still finds our objects. A test that uses them reaches its own
    # process and no more.
    ours = [name for name in sys.modules if name.partition(".")[0] == "microcoder"]
    for name in ours:
        del sys.modules[name]
    sys.argv[:] = [runner.FILE_NAME]
    sys.orig_argv[:] = [runner.FILE_NAME]
    sys.dont_write_bytecode = True
