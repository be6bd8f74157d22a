"""Read and replace the text that a benchmark writes into a document, between the marks `<!--
bench/NAME begin -->` and `<!-- bench/NAME end -->`."""

from __future__ import annotations

from pathlib import Path


def read(path: Path, name: str) -> str:
    """Return the text between the marks of a benchmark; raise SystemExit unless the document has
    both, once each and in this order."""
    return _parts(path, name)[1].strip("\n")


def write(path: Path, name: str, text: str) -> None:
    """Replace the text between the marks with ``text``."""
    before, _, after = _parts(path, name)
    path.write_text(f"{before}\n{text}\n{after}")


def _parts(path: Path, name: str) -> tuple[str, str, str]:
    """Split a document after the first mark and before the second."""
    begin, end = (f"<!-- bench/{name} {which} -->" for which in ("begin", "end"))
    text = path.read_text() if path.exists() else ""
    before, _, rest = text.partition(begin)
    between, _, after = rest.partition(end)
    if (text.count(begin), text.count(end), rest.count(end)) != (1, 1, 1):
        raise SystemExit(f"{path} needs {begin} and {end}, once each, where the text belongs")
    return before + begin, between, end + after
