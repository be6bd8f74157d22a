"""Read an initramfs archive ("newc" format)."""

from __future__ import annotations

from pathlib import Path


def read(path: Path) -> dict[str, tuple[int, bytes]]:
    """The mode and content of every entry, by name; of two with one name, the later."""
    data, at = path.read_bytes(), 0
    found: dict[str, tuple[int, bytes]] = {}
    while at < len(data):
        assert data[at : at + 6] == b"070701", at
        fields = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = data[at + 110 : at + 110 + name_size - 1].decode()
        at += 110 + name_size
        at += -at % 4
        found[name] = (mode, data[at : at + size])
        at += size
        at += -at % 4
    return found
