"""What a benchmark has written lies in a document between two marks, `<!-- bench/NAME begin -->`
and `<!-- bench/NAME end -->`."""

from __future__ import annotations

from pathlib import Path


def read(path: Path, name: str) -> str:
    """What lies between the marks of a benchmark; raise SystemExit if the document has not both,
    once each and in this order."""
    return _parts(path, name)[1].strip("\n")


def write(path: Path, name: str, text: str) -> None:
    """Put ``text`` there instead; everything else stays as it is."""
    before, _, after = _parts(path, name)
    path.write_text(f"{before}\n{text}\n{after}")


def _parts(path: Path, name: str) -> tuple[str, str, str]:
    """The document up to and with the first mark, what lies between, and the rest from the second
    on."""
    begin, end = (f"<!-- bench/{name} {which} -->" for which in ("begin", "end"))
    text = path.read_text() if path.exists() else ""
    before, _, rest = text.partition(begin)
    between, _, after = rest.partition(end)
    if (text.count(begin), text.count(end), rest.count(end)) != (1, 1, 1):
        raise SystemExit(
            f"{path} has not {begin} and {end}, once each: put them where the text is to lie"
        )
    return before + begin, between, end + after
