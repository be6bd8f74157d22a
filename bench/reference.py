"""Write every key of experiments, schemes, topologies and published figures into
docs/experiment-file.md.

    python3 bench/reference.py [--write]

The types that read the files are the source. Without `--write`, print it. `bench/schema.py` writes
the same for editors.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import msgspec

from bench import marks
from qjump_mn.model.experiment import ExperimentSpec
from qjump_mn.model.scheme import SchemeSpec
from qjump_mn.model.topology import TopologySpec
from qjump_mn.model.units import Quantiles, Quantity
from qjump_mn.model.workload import AnyPlan, AnySpec
from qjump_mn.programs import registry
from qjump_mn.programs.base import FlowSpec, WorkloadSpec
from qjump_mn.report.figures.published import Published

PAGE = ROOT / "docs/experiment-file.md"

WORDS: dict[object, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "boolean",
}
FILES = {
    "An experiment": ExperimentSpec,
    "A scheme": SchemeSpec,
    "A topology": TopologySpec,
    "A published figure": Published,
}


def main(arguments: list[str]) -> None:
    """Print or write."""
    text = "\n".join(page()).strip("\n")
    if "--write" in arguments:
        marks.write(PAGE, "reference", text)
    else:
        print(text)


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    seen: set[type] = set()
    for title, spec in FILES.items():
        yield from section(2, title, spec, seen)
    yield "## Workloads\n"
    yield "Each workload is a table `[workloads.NAME]`; its key `program` names one of these.\n"
    yield from section(3, "All of them", WorkloadSpec, seen)
    for name in registry.OURS:
        yield from section(3, f"`{name}`", registry.spec_type(name), seen)


def section(level: int, title: str, spec: Any, seen: set[type]) -> Iterator[str]:
    """Yield a type's description and keys, then those of the types of its keys, unless the page has
    them (``seen``)."""
    if spec in seen:
        return
    seen.add(spec)
    yield f"{'#' * level} {title}\n"
    yield f"{words(spec)}\n"
    fields = [one for one in msgspec.structs.fields(spec) if not _is_common(spec, one.encode_name)]
    hints = typing.get_type_hints(spec)
    if _has_the_keys_of_another(spec, seen):
        yield f"It has the keys of the {title} above, all optional.\n"
        return
    for field in fields:
        mark, default = _default(field)
        yield f"- `{field.encode_name}`{mark}: {_kind(hints[field.name])}{default}"
    if fields:
        yield ""
    for one in fields:
        for below in _structs(typing.get_type_hints(spec)[one.name]):
            if below not in FILES.values():
                tag = below.__struct_config__.tag
                title = f"`{one.encode_name}`" + (f" of `{tag}`" if tag else "")
                yield from section(min(level + 1, 4), title, below, seen)


def _has_the_keys_of_another(spec: Any, seen: set[type]) -> bool:
    """Whether the page already has a type with the same keys."""
    keys = spec.__struct_fields__
    return any(getattr(one, "__struct_fields__", ()) == keys for one in seen - {spec})


def _is_common(spec: Any, name: str) -> bool:
    """Whether all workloads have the key."""
    return (
        spec not in (WorkloadSpec, FlowSpec)
        and issubclass(spec, WorkloadSpec)
        and hasattr(WorkloadSpec, name)
    )


def words(spec: Any) -> str:
    """Return a type's docstring as Markdown."""
    text = inspect.cleandoc(spec.__doc__ or "")
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return re.sub(r"``(.+?)``", r"`\1`", text)


def _kind(hint: Any) -> str:
    """Return what kind of value a key takes; lists have brackets, and tables braces."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_kind(one) for one in arguments if one is not type(None)))
    if origin is Literal:
        return ", ".join(f"`{json.dumps(one)}`" for one in arguments)
    if origin is list or (origin is tuple and arguments[-1:] == (...,)):
        return f"[{_kind(arguments[0])}]"
    if origin is tuple:
        return f"[{', '.join(_kind(one) for one in arguments)}]"
    if origin is dict:
        return f"{{{_kind(arguments[1])}}}"
    if isinstance(hint, type) and issubclass(hint, Quantity):
        return hint.__name__.lower()
    if hint is AnySpec:
        return "workload"
    if isinstance(hint, type) and (issubclass(hint, msgspec.Struct) or hint is AnyPlan):
        return "table"
    if hint is Quantiles:
        return "percentiles"
    return WORDS.get(hint, f"`{getattr(hint, '__name__', hint)}`")


def _default(field: Any) -> tuple[str, str]:
    """Return a question mark for a key without a value by default, and a comma with the default."""
    if field.required:
        return "", ""
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, Quantity):
        return "", f', `"{value}"`'
    empty = isinstance(value, list | dict | tuple | str) and not value
    if value is None or empty or isinstance(value, msgspec.Struct):
        return "?", ""
    return "", f", `{msgspec.json.encode(value, enc_hook=str).decode()}`"


def _structs(hint: Any) -> Iterator[Any]:
    """Yield the types of the tables in a value."""
    if hint is AnyPlan:
        yield from (registry.program(name).plan for name in registry.OURS)
        return
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        if not issubclass(hint, WorkloadSpec):
            yield hint
        return
    for one in typing.get_args(hint):
        yield from _structs(one)


if __name__ == "__main__":
    main(sys.argv[1:])
