"""What a bundle says of itself to other programs: RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) and
CITATION.cff 1.2.0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import msgspec

from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import Outcome

PAPER = "Queues Don't Matter When You Can JUMP Them!"
AUTHORS = (
    ("Matthew P.", "Grosvenor"),
    ("Malte", "Schwarzkopf"),
    ("Ionel", "Gog"),
    ("Robert N. M.", "Watson"),
    ("Andrew W.", "Moore"),
    ("Steven", "Hand"),
    ("Jon", "Crowcroft"),
)
VENUE = "12th USENIX Symposium on Networked Systems Design and Implementation (NSDI 15)"
PAGES = (1, 14)

_FORMATS = {
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
}
_TEXT = "text/plain"
_NOT_ESCAPED = "/=+@,~"
"""In the path of a file, which is a URI there; what else a name may have is escaped."""


def metadata(manifest: Manifest, outcome: Outcome, names: Iterable[str]) -> bytes:
    """``ro-crate-metadata.json`` for a bundle of the files ``names``: a flat list of entities, which refer to
    each other by ``@id`` alone, as RO-Crate wants it."""
    files = [_file(name) for name in sorted(names)]
    authors = [_person(given, family) for given, family in AUTHORS]
    venue = {"@id": "#venue", "@type": "PublicationEvent", "name": VENUE}
    paper = {
        "@id": "#paper",
        "@type": "ScholarlyArticle",
        "name": PAPER,
        "author": [_reference(one) for one in authors],
        "datePublished": "2015",
        "isPartOf": _reference(venue),
    }
    maker = {
        "@id": "#qjump-mn",
        "@type": "SoftwareApplication",
        "name": "qjump-mn",
        "softwareVersion": _version(manifest),
        "citation": {"@id": "#paper"},
    }
    run = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": _command(manifest),
        "instrument": {"@id": "#qjump-mn"},
        "startTime": manifest.started_utc,
        "endTime": manifest.ended_utc or manifest.started_utc,
        "result": {"@id": "./"},
        "description": f"machine {manifest.machine.get('image', 'none')}, backend {manifest.backend}",
    }
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": _title(manifest),
        "description": f"{manifest.plan.question} {outcome.reference}",
        "datePublished": manifest.started_utc[:10],
        "license": "not stated by who made it",
        "citation": {"@id": "#paper"},
        "mentions": {"@id": "#run"},
        "hasPart": [_reference(file) for file in files],
    }
    descriptor = {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    graph = [descriptor, root, run, maker, paper, venue, *authors, *files]
    crate = {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}
    return msgspec.json.format(msgspec.json.encode(crate), indent=1) + b"\n"


def citation(manifest: Manifest, outcome: Outcome) -> bytes:
    """``CITATION.cff``: how to cite the run, and what it rests on.

    Each value is JSON, which is YAML; the keys are plain, for programs look for a line of `cff-version:`.
    """
    authors = [{"given-names": given, "family-names": family} for given, family in AUTHORS]
    paper = {
        "type": "conference-paper",
        "title": PAPER,
        "authors": authors,
        "year": 2015,
        "start": PAGES[0],
        "end": PAGES[1],
        "conference": {"name": VENUE},
    }
    program = {
        "type": "software",
        "title": "qjump-mn",
        "version": _version(manifest),
        "authors": [{"name": "the qjump-mn authors"}],
    }
    fields = {
        "cff-version": "1.2.0",
        "message": "If you use these results, cite them, the program that made them, and the paper.",
        "type": "dataset",
        "title": _title(manifest),
        "authors": [{"alias": "anonymous"}],
        "date-released": manifest.started_utc[:10],
        "identifiers": [
            {"type": "other", "value": outcome.results_sha256, "description": "SHA-256 of the results"}
        ],
        "references": [program, paper],
    }
    return b"".join(f"{key}: ".encode() + msgspec.json.encode(value) + b"\n" for key, value in fields.items())


def _title(manifest: Manifest) -> str:
    return f"A run of qjump-mn: {manifest.plan.experiment}, preset {manifest.plan.preset}"


def _version(manifest: Manifest) -> str:
    version = manifest.versions.get("qjump-mn", "unknown")
    commit = manifest.git.commit and f", commit {manifest.git.commit}"
    return f"{version}{commit}{' with changes' if manifest.git.dirty else ''}"


def _command(manifest: Manifest) -> str:
    return " ".join(manifest.argv)


def _file(name: str) -> dict[str, Any]:
    kind = _FORMATS.get(name.rpartition(".")[2], _TEXT)
    return {"@id": quote(name, safe=_NOT_ESCAPED), "@type": "File", "name": name, "encodingFormat": kind}


def _person(given: str, family: str) -> dict[str, Any]:
    name = f"{given} {family}"
    names = {"name": name, "givenName": given, "familyName": family}
    return {"@id": f"#{quote(name)}", "@type": "Person", **names}


def _reference(entity: dict[str, Any]) -> dict[str, str]:
    return {"@id": entity["@id"]}
