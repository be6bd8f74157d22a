"""Load the BPF programs of tests/guest/qdisc/bpf for the duration of a `with` block.

Uses the guest's libbpf, which tc needs anyway. The runner has put the object files into /tmp.
"""
import contextlib
import ctypes
import struct
import sys
from collections.abc import Iterator

import rig

LEVELS = 8
PINNED = "/run/bpf"  # not below /sys, which tc -n remounts


class _Object:
    """A loaded object file, whose .rodata is `struct rule` of level.h with the given constants."""

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
    """Yield the words for `tc filter add ... egress` that set departure times; budgets in bytes."""
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
    """Register the queueing discipline with these budgets; yield its kind for tc."""
    loaded = _Object("qdisc", epoch_ns, budgets, rate, overhead)
    link = ctypes.c_void_p(loaded.some(loaded.lib.bpf_map__attach_struct_ops(loaded.map("bpf_qjump")), "register"))
    yield "bpf_qjump"
    loaded.lib.bpf_link__destroy(link)
    loaded.lib.bpf_object__close(loaded.object)
