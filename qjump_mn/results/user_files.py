"""Copy the user's own files that a run uses into its run directory."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from qjump_mn import extensions
from qjump_mn.model import words
from qjump_mn.model.plan import Plan
from qjump_mn.programs import registry, user_programs
from qjump_mn.resolve import loading, named_files
from qjump_mn.results import contents

FOLDER = contents.OWN
"""The folder in the run directory, and in its bundle."""
MAX_BYTES = 1 << 20
"""The size up to which a file is copied: sources are smaller."""

_QUOTED = re.compile(r"""["']([^"'\n]+)["']""")


def keep(plan: Plan, run: Path) -> None:
    """Copy the user's files that ``plan`` uses into the run directory ``run``."""
    for name, file in files_of(plan):
        target = run / FOLDER / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def files_of(plan: Plan) -> Iterator[tuple[str, Path]]:
    """Yield the user's files that ``plan`` uses, each with its path relative to ``FOLDER``.

    These are experiment, topologies, schemes, published figures and programs in the user's folders,
    the jobs, traces, modules and laws that they name, and all packages that extend qjump-mn.
    """
    wanted = {
        "experiments": {plan.shown.experiment},
        "topologies": {arm.network.topology for arm in plan.run.arms},
        "schemes": {arm.scheme.name for arm in plan.run.arms},
        "plots/published": set(plan.shown.figure.published),
    }
    text = ""
    for kind, names in wanted.items():
        ours = loading.folders(kind)[-1].resolve()
        for name in sorted(names):
            file = loading.path_of(kind, name)
            if file is not None and file.parent.resolve() != ours:
                text += file.read_text(encoding="utf-8-sig")
                yield f"{kind}/{name}.toml", file
    used = {
        str(workload.__struct_config__.tag) for arm in plan.run.arms for workload in arm.workloads
    }
    yield from _named_in(text, used)
    named = [file for arm in plan.run.arms for file in (arm.scheme.module, arm.scheme.law)]
    for name in sorted({each.file for each in named if each}):
        if path := named_files.path_of("schemes", name):
            yield f"schemes/{name}", path
    for name, folder in user_programs.folders().items():
        if name in used:
            yield from _sources(f"{user_programs.FOLDER}/{name}", folder)
    for name, folder in extensions.packages().items():
        yield from _sources(f"extensions/{name}", folder)


def _named_in(text: str, programs: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the jobs and traces that the user's files name: the plan has only their content."""
    jobs = {getattr(registry.program(name).spec, "FILE", "") for name in programs} - {""}
    names = sorted({name for name in _QUOTED.findall(text) if not words.FILE.problem(name)})
    for kind, suffixes in (("experiments", jobs), ("topologies", {named_files.TRACE})):
        ours = loading.folders(kind)[-1]
        for file in (f"{name}.{suffix}" for suffix in sorted(suffixes) for name in names):
            if (path := named_files.path_of(kind, file)) and path.parent != ours:
                yield f"{kind}/{file}", path


def _sources(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(folder.rglob("*")):
        relative = file.relative_to(folder)
        # Skip caches and hidden files: a bundle has none.
        is_left = any(part == "__pycache__" or part.startswith(".") for part in relative.parts)
        if file.is_file() and not is_left and file.stat().st_size <= MAX_BYTES:
            yield f"{name}/{relative.as_posix()}", file
