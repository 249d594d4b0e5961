"""What shuts a submission in: bubblewrap, with a root of its own and nothing of ours in it.

A submission sees Python, the packages that are installed beside it, fairpg_lite, and two files of
the checker, all read-only; it writes to a small folder in memory. It has no capabilities, cannot
gain privileges, and has its own network (without a way out), processes and shared memory. A filter
of system calls keeps it to one process, so that the limit on memory is one for all of it.
"""

import os
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

import fairpg_lite

HERE = Path(__file__).resolve().parent
MEGABYTES = 256  # to write to, in memory
#: Where the package and the two files of the checker are, inside.
INSIDE = Path("/sandbox")
#: Read for what the processor can do; without it PyTorch takes it for an old one.
PROCESSORS = Path("/sys/devices/system/cpu")

# System calls by machine: the number that says which machine, and the calls refused there.
_REFUSED = {
    "x86_64": (
        0xC000003E,
        {
            "fork": 57,
            "vfork": 58,
            "ptrace": 101,
            "pivot_root": 155,
            "chroot": 161,
            "mount": 165,
            "umount2": 166,
            "kexec_load": 246,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "unshare": 272,
            "perf_event_open": 298,
            "open_by_handle_at": 304,
            "setns": 308,
            "process_vm_readv": 310,
            "process_vm_writev": 311,
            "bpf": 321,
            "userfaultfd": 323,
            "io_uring_setup": 425,
            "open_tree": 428,
            "move_mount": 429,
            "fsopen": 430,
            "fsmount": 432,
            "mount_setattr": 442,
        },
        56,
    ),
    "aarch64": (
        0xC00000B7,
        {
            "umount2": 39,
            "mount": 40,
            "pivot_root": 41,
            "chroot": 51,
            "unshare": 97,
            "kexec_load": 104,
            "ptrace": 117,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "perf_event_open": 241,
            "open_by_handle_at": 265,
            "setns": 268,
            "process_vm_readv": 270,
            "process_vm_writev": 271,
            "bpf": 280,
            "userfaultfd": 282,
            "io_uring_setup": 425,
            "open_tree": 428,
            "move_mount": 429,
            "fsopen": 430,
            "fsmount": 432,
            "mount_setattr": 442,
        },
        220,
    ),
}
_CLONE3 = 435
_CLONE_THREAD = 0x00010000
_EPERM = 1
_ENOSYS = 38


@dataclass(frozen=True)
class Sandbox:
    """What one run of the grader found out about bubblewrap on this machine.

    Attributes:
        command: what to put before a command, or nothing where there is no sandbox.
        reason: why there is none.
        version: bubblewrap's own name and version.
    """

    command: tuple[str, ...] = ()
    reason: str = ""
    version: str = ""

    def __bool__(self) -> bool:
        return bool(self.command)

    @property
    def one_process(self) -> bool:
        """Whether the filter knows this machine."""
        return platform.machine() in _REFUSED

    def in_force(self, memory: float, timeout: float) -> str:
        """What a submission could not do, in words for the end of a grading."""
        limits = f"{memory:g} GB of memory and {timeout:g} s of processor time per cell and task"
        if not self:
            return (
                "There was NO sandbox: the code of the submissions ran with your rights and could "
                "read and write whatever you can. In force were a process for each, Python's "
                f"sockets blocked, {limits}."
            )
        processes = "one process" if self.one_process else "any number of processes"
        return (
            f"Each submission ran in {self.version}: it saw Python, the package and its own "
            f"notebook, all read-only, and wrote to {MEGABYTES} MB in memory; it had no network, "
            "no capabilities, and no sight of other processes, submissions, the solution or your "
            f"files; {processes}, {limits}."
        )


def _instruction(code: int, yes: int, no: int, value: int) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)


def seccomp_filter(machine: str) -> bytes:
    """A filter of system calls in the kernel's format; empty for a machine that is not known.

    It refuses new processes (threads are allowed) and what could undo a sandbox.
    """
    if machine not in _REFUSED:
        return b""
    kind, refused, clone = _REFUSED[machine]
    load, equal, at_least, bits, give_back = 0x20, 0x15, 0x35, 0x45, 0x06
    allow = _instruction(give_back, 0, 0, 0x7FFF0000)
    deny = _instruction(give_back, 0, 0, 0x00050000 | _EPERM)
    absent = _instruction(give_back, 0, 0, 0x00050000 | _ENOSYS)
    lines = [_instruction(load, 0, 0, 4), _instruction(equal, 1, 0, kind), deny]
    lines += [_instruction(load, 0, 0, 0)]
    if machine == "x86_64":  # the same calls by their other numbers
        lines += [_instruction(at_least, 0, 1, 0x40000000), deny]
    for number in refused.values():
        lines += [_instruction(equal, 0, 1, number), deny]
    lines += [_instruction(equal, 0, 1, _CLONE3), absent]  # then the C library takes `clone`
    lines += [_instruction(equal, 1, 0, clone), allow]
    lines += [_instruction(load, 0, 0, 16), _instruction(bits, 0, 1, _CLONE_THREAD), allow, deny]
    return b"".join(lines)


@contextmanager
def open_filter() -> Iterator[int | None]:
    """A file descriptor that bubblewrap can read the filter from; None where there is none."""
    program = seccomp_filter(platform.machine())
    if not program:
        yield None
        return
    reading, writing = os.pipe()
    try:
        os.write(writing, program)
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


def package_folders() -> list[str]:
    """The folders in which PyTorch and NumPy are installed."""
    folders = [str(Path(str(package.__file__)).parents[1]) for package in (torch, np)]
    return list(dict.fromkeys(folders))


def python_path() -> str:
    """PYTHONPATH for inside: the package, the two files, and where the others were found."""
    return os.pathsep.join([str(INSIDE), *package_folders()])


def _python_folders() -> list[Path]:
    """The folders that hold this Python and its packages, also where a link points to."""
    folders = [Path(p) for p in (sys.prefix, sys.exec_prefix, sys.base_prefix)]
    folders += [Path(folder) for folder in package_folders()]
    step = Path(sys.executable)
    for _ in range(20):
        folders.append(step.parent.parent)
        if not step.is_symlink():
            break
        step = Path(os.path.normpath(step.parent / os.readlink(step)))
    folders += [folder.resolve() for folder in folders]
    kept = list[Path]()
    for folder in sorted(set(folders), key=lambda path: len(path.parts)):
        if not any(folder.is_relative_to(other) for other in [*kept, Path("/usr")]):
            kept.append(folder)
    return kept


def _command(hide: Iterable[Path]) -> list[str]:
    """bubblewrap with everything but the filter and what to run."""
    size = str(MEGABYTES * 2**20)
    words = ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent"]
    words += ["--new-session", "--cap-drop", "ALL", "--uid", "65534", "--gid", "65534"]
    words += ["--hostname", "sandbox", "--size", size, "--tmpfs", "/tmp"]
    words += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    folders = _python_folders()
    for folder in folders:
        words += ["--ro-bind", str(folder), str(folder)]
    # Whatever of ours lies inside one of these is covered.
    for path in hide:
        if path.is_dir() and any(path.is_relative_to(f) for f in [*folders, Path("/usr")]):
            words += ["--size", "4096", "--tmpfs", str(path), "--remount-ro", str(path)]
    package = str(Path(fairpg_lite.__file__).resolve().parent)
    words += ["--ro-bind", package, str(INSIDE / "fairpg_lite")]
    for name in ("given.py", "sandbox.py"):
        words += ["--ro-bind", str(HERE / name), str(INSIDE / "checker" / name)]
    if PROCESSORS.is_dir():
        words += ["--ro-bind", str(PROCESSORS), str(PROCESSORS)]
    words += ["--proc", "/proc", "--dev", "/dev", "--size", str(2**26), "--tmpfs", "/dev/shm"]
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]
    return words


@lru_cache(maxsize=8)
def find_sandbox(hide: tuple[str, ...] = ()) -> Sandbox:
    """bubblewrap ready for use, or why it is not; ``hide`` are folders of ours.

    It is tried: a process is started that looks whether it can see or write what it must not, and
    whether it finds the packages.
    """
    if not sys.platform.startswith("linux"):
        return Sandbox(reason=f"bubblewrap needs Linux, and this is {sys.platform}")
    if shutil.which("bwrap") is None:
        return Sandbox(reason="bubblewrap is not installed (apt-get install bubblewrap)")
    options = subprocess.run(
        ["bwrap", "--help"], capture_output=True, text=True, check=False
    ).stdout
    if "--size" not in options:
        return Sandbox(reason="this bubblewrap cannot limit a folder in memory; take 0.7 or newer")
    home = Path.home().resolve()
    if any(folder == Path("/") or folder == home for folder in _python_folders()):
        return Sandbox(reason=f"this Python is installed in {sys.prefix}, beside your own files")
    ours = [Path(path).resolve() for path in hide]
    command = _command([*ours, HERE.parent])
    if "--disable-userns" in options:  # from 0.8 on; before, the filter alone refuses `unshare`
        command.insert(1, "--disable-userns")
    hidden = [str(path) for path in (*ours, HERE.parent / "solution.md")]
    looks = (
        "import os, sys\n"
        f"for path in {hidden!r}:\n"
        "    if os.path.isfile(path) or (os.path.isdir(path) and os.listdir(path)):\n"
        "        sys.exit('a submission would see ' + path)\n"
        "try:\n"
        "    open('/probe', 'w')\n"
        "    sys.exit('a submission could write to its root')\n"
        "except OSError:\n"
        "    open('/tmp/probe', 'w').close()\n"
        "import fairpg_lite\n"
    )
    with open_filter() as program:
        words = with_filter(command, program)
        try:
            done = subprocess.run(
                [*words, sys.executable, "-P", "-c", looks],
                env={"PYTHONPATH": python_path(), "PATH": os.environ.get("PATH", "")},
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
                pass_fds=() if program is None else (program,),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Sandbox(reason=f"bubblewrap does not start: {error}")
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:]
        return Sandbox(reason=f"bubblewrap does not work here: {' '.join(last)[:300]}")
    version = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False)
    return Sandbox(tuple(command), version=version.stdout.strip() or "bubblewrap")


def with_filter(command: Iterable[str], program: int | None) -> list[str]:
    """The command with the descriptor of the filter."""
    return [*command, *([] if program is None else ["--seccomp", str(program)])]
