"""Loads the BPF programs of tests/guest/qdisc/bpf with the guest's libbpf, which tc needs anyway, for as long as a block lasts.

The runner has put their objects into /tmp.
"""
import contextlib
import ctypes
import struct
import sys
from collections.abc import Iterator

import rig

LEVELS = 8
PINNED = "/run/bpf"  # not below /sys, which tc -n mounts anew


class _Object:
    """An object file loaded with its constants: `struct rule` of level.h, the only thing in its .rodata."""

    def __init__(self, name: str, epoch_ns: int, budgets: dict[int, int], rate: int = 0, overhead: int = 0) -> None:
        self.lib = ctypes.CDLL("libbpf.so.1", use_errno=True)
        for function in ("bpf_object__open_file", "bpf_object__find_map_by_name", "bpf_map__initial_value",
                         "bpf_object__find_program_by_name", "bpf_map__attach_struct_ops"):
            getattr(self.lib, function).restype = ctypes.c_void_p
        self.object = ctypes.c_void_p(self.some(self.lib.bpf_object__open_file(f"/tmp/{name}.o".encode(), None), f"open {name}"))
        size = ctypes.c_size_t()
        constants = self.lib.bpf_map__initial_value(self.map(".rodata"), ctypes.byref(size))
        rule = struct.pack("QQI8I4x", epoch_ns, rate, overhead, *(budgets.get(p, 0) for p in range(LEVELS)))
        if len(rule) != size.value:
            sys.exit(f"{name}: .rodata has {size.value} bytes, the rule {len(rule)}")
        ctypes.memmove(constants, rule, len(rule))
        if self.lib.bpf_object__load(self.object):
            sys.exit(f"{name} does not load")

    def some(self, pointer: int | None, what: str) -> int:
        return pointer or sys.exit(f"{what}: errno {ctypes.get_errno()}")

    def map(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.some(self.lib.bpf_object__find_map_by_name(self.object, name.encode()), name))

    def program(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.some(self.lib.bpf_object__find_program_by_name(self.object, name.encode()), name))


@contextlib.contextmanager
def edt(epoch_ns: int, budgets: dict[int, int]) -> Iterator[str]:
    """What `tc filter add ... egress` takes for departure times by those budgets, in bytes by level."""
    rig.run(f"mkdir -p {PINNED}")
    rig.run(f"mount -t bpf bpf {PINNED}")
    loaded = _Object("edt", epoch_ns, budgets)
    if loaded.lib.bpf_program__pin(loaded.program("edt"), f"{PINNED}/edt".encode()):
        sys.exit("edt cannot be pinned")
    yield f"bpf da object-pinned {PINNED}/edt"
    loaded.lib.bpf_object__close(loaded.object)
    rig.run(f"umount {PINNED}")


@contextlib.contextmanager
def qdisc(epoch_ns: int, budgets: dict[int, int], rate: int = 0, overhead: int = 0) -> Iterator[str]:
    """The kind, for tc, of the queueing discipline with those budgets, while it is registered."""
    loaded = _Object("qdisc", epoch_ns, budgets, rate, overhead)
    link = ctypes.c_void_p(loaded.some(loaded.lib.bpf_map__attach_struct_ops(loaded.map("bpf_qjump")), "register"))
    yield "bpf_qjump"
    loaded.lib.bpf_link__destroy(link)
    loaded.lib.bpf_object__close(loaded.object)
