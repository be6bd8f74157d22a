"""Start a guest's kernel behind a fence: `python -I -S fence.py DESCRIPTORS PROGRAM ARGUMENT…`.

A guest may run a stranger's programs, and its processes are processes of the host. The fence keeps
the host out of reach even of a program that escapes the guest's kernel. The kernel and all its
processes

- run as the user nobody, if we are root, and gain no privileges;
- open no file but the kernel itself and /proc/cpuinfo, and signal no process outside (by Landlock,
  as far as the host has it);
- make only the system calls that the kernel needs, none of which creates a network socket or looks
  into another process;
- write no file larger than a result, and dump no core;
- hold only the listed descriptors, which are renumbered from 3 on, in their order.

This is a program of its own and imports nothing of the package, because it runs between fork and
exec.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys

FIRST = 3
"""The number of the first descriptor that is passed on."""

_NOBODY = 65534
_FILE_BYTES = 4 << 30  # the guest's memory is a file, too
_LIBC = ctypes.CDLL(None, use_errno=True)

_ADDR_NO_RANDOMIZE = 0x40000  # include/uapi/linux/personality.h
# include/uapi/linux/prctl.h and landlock.h; the system calls have these numbers on all processors
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _READ_FILE = 1, 4
_FILES = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""The number of access rights to files, by version of the interface."""
_NET_SINCE, _TCP = 4, 3
_SCOPES_SINCE, _SCOPES = 6, 3

# include/uapi/linux/seccomp.h and audit.h, and the classes of instructions of linux/bpf_common.h
_SECCOMP, _SET_MODE_FILTER = 317, 1
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050001, 0x7FFF0000  # the second with EPERM
_X86_64 = 0xC000003E
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_CALLS = {
    "memory": {"mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "mremap": 25, "madvise": 28},
    "files": {
        "read": 0, "write": 1, "close": 3, "fstat": 5, "lseek": 8, "ioctl": 16, "pread64": 17,
        "writev": 20, "access": 21, "dup": 32, "dup2": 33, "fcntl": 72, "ftruncate": 77,
        "readlink": 89, "openat": 257, "newfstatat": 262, "readlinkat": 267, "memfd_create": 319,
        "statx": 332, "close_range": 436,
    },
    "between the kernel and its processes": {
        "poll": 7, "sendmsg": 46, "recvmsg": 47, "socketpair": 53, "futex": 202,
        "epoll_create": 213, "epoll_wait": 232, "epoll_ctl": 233, "signalfd4": 289,
        "epoll_create1": 291,
    },
    "processes": {
        "sched_yield": 24, "nanosleep": 35, "getpid": 39, "clone": 56, "vfork": 58, "execve": 59,
        "exit": 60, "wait4": 61, "kill": 62, "getppid": 110, "setsid": 112, "personality": 135,
        "prctl": 157, "arch_prctl": 158, "gettid": 186, "set_tid_address": 218, "exit_group": 231,
        "tgkill": 234, "set_robust_list": 273, "prlimit64": 302, "seccomp": 317, "getrandom": 318,
        "execveat": 322, "rseq": 334,
    },
    "signals": {"rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "sigaltstack": 131},
    "clocks": {
        "timer_create": 222, "timer_settime": 223, "timer_delete": 226, "clock_gettime": 228,
        "clock_getres": 229, "clock_nanosleep": 230,
    },
}  # fmt: skip


def main(descriptors: list[int], argv: list[str]) -> None:
    """Put up the fence and become the program; raise OSError if the host refuses a part of it."""
    _renumber(descriptors)
    try:
        kernel = os.open(argv[0], os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        sys.exit(f"{argv[0]} cannot be started: {os.strerror(error.errno or 0).lower()}")
    # Otherwise the kernel would do this itself, and re-execute itself by a path that the fence
    # hides. Where a container's profile forbids it, addresses are random, which changes no result.
    _LIBC.personality(_ADDR_NO_RANDOMIZE)
    for limit, maximum in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, _FILE_BYTES)):
        resource.setrlimit(limit, (maximum, maximum))
    if os.geteuid() == 0:
        parent = os.getppid()
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        # A change of user clears the parent-death signal (process/die_with_parent.py): set it
        # again.
        _checked(_LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
        if os.getppid() != parent:
            os._exit(1)
    _checked(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")
    _restrict_files(kernel)
    _filter_system_calls()
    # By its descriptor, because the user nobody may have no access to the kernel's folder.
    os.execve(f"/proc/self/fd/{kernel}", argv, dict(os.environ))


def _renumber(descriptors: list[int]) -> None:
    """Renumber the descriptors from FIRST on, and close all others but the standard ones."""
    above = max(*descriptors, FIRST + len(descriptors)) + 1
    for number, descriptor in enumerate(descriptors, above):
        os.dup2(descriptor, number)
    for number in range(FIRST, FIRST + len(descriptors)):
        os.dup2(number - FIRST + above, number)
    os.closerange(FIRST + len(descriptors), resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def _restrict_files(kernel: int) -> None:
    """Forbid by Landlock everything that the host's version of it can forbid."""
    version = _LIBC.syscall(_CREATE_RULESET, None, 0, _VERSION)
    if version < 1:  # the host has no Landlock
        return
    rights = (1 << _FILES.get(version, 16)) - 1
    ruleset = struct.pack(
        "=QQQ",
        rights,
        _TCP if version >= _NET_SINCE else 0,
        _SCOPES if version >= _SCOPES_SINCE else 0,
    )
    size = 24 if version >= _SCOPES_SINCE else 16 if version >= _NET_SINCE else 8
    handle = _checked(_LIBC.syscall(_CREATE_RULESET, ruleset, size, 0), "landlock_create_ruleset")
    for target, allowed in ((kernel, _EXECUTE | _READ_FILE), ("/proc/cpuinfo", _READ_FILE)):
        parent = target if isinstance(target, int) else os.open(target, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", allowed, parent)
        _checked(_LIBC.syscall(_ADD_RULE, handle, _PATH_BENEATH, rule, 0), "landlock_add_rule")
    _checked(_LIBC.syscall(_RESTRICT_SELF, handle, 0), "landlock_restrict_self")
    os.close(handle)


def _filter_system_calls() -> None:
    """Refuse all system calls that are not listed.

    Calls of the guest's own programs never get here: the guest's kernel traps them first.
    """
    numbers = [number for calls in _CALLS.values() for number in calls.values()]
    program = [(_LOAD, 0, 0, _ARCHITECTURE), (_IF_EQUAL, 1, 0, _X86_64), (_RETURN, 0, 0, _KILL)]
    program.append((_LOAD, 0, 0, _NUMBER))
    program += [
        (_IF_EQUAL, len(numbers) - index, 0, number) for index, number in enumerate(numbers)
    ]
    program += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    code = ctypes.create_string_buffer(packed)
    filter_ = struct.pack("@HP", len(program), ctypes.addressof(code))
    _checked(_LIBC.syscall(_SECCOMP, _SET_MODE_FILTER, 0, filter_), "seccomp")


def _checked(result: int, call: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")
    return result


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1].split(",")], sys.argv[2:])
