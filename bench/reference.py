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
    int: "a whole number",
    float: "a number",
    bool: "true or false",
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
    """The lines of the page."""
    told: set[type] = set()
    for title, spec in FILES.items():
        yield from section(2, title, spec, told)
    yield "## Workloads\n"
    yield "Each workload is a table `[workloads.NAME]`; its key `program` names one of these.\n"
    yield from section(3, "All of them", WorkloadSpec, told)
    for name in registry.OURS:
        yield from section(3, f"`{name}`", registry.spec_type(name), told)


def section(level: int, title: str, spec: Any, told: set[type]) -> Iterator[str]:
    """A type's words and its keys, and then the types that these are of, unless they are
    ``told``."""
    if spec in told:
        return
    told.add(spec)
    yield f"{'#' * level} {title}\n"
    yield f"{words(spec)}\n"
    fields = [one for one in msgspec.structs.fields(spec) if not _is_common(spec, one.encode_name)]
    if fields:
        yield "| key | value | default |"
        yield "|---|---|---|"
        hints = typing.get_type_hints(spec)
        for field in fields:
            yield f"| `{field.encode_name}` | {_kind(hints[field.name])} | {_default(field)} |"
        yield ""
    for one in fields:
        for below in _structs(typing.get_type_hints(spec)[one.name]):
            if below not in FILES.values():
                tag = below.__struct_config__.tag
                title = f"`{one.encode_name}`" + (f" of `{tag}`" if tag else "")
                yield from section(min(level + 1, 4), title, below, told)


def _is_common(spec: Any, name: str) -> bool:
    """Whether a workload has the key because all have it."""
    return (
        spec not in (WorkloadSpec, FlowSpec)
        and issubclass(spec, WorkloadSpec)
        and hasattr(WorkloadSpec, name)
    )


def words(spec: Any) -> str:
    """What a type says of itself, as Markdown."""
    text = inspect.cleandoc(spec.__doc__ or "")
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return re.sub(r"``(.+?)``", r"`\1`", text)


def _kind(hint: Any) -> str:
    """What may stand there."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_kind(one) for one in arguments if one is not type(None)))
    if origin is Literal:
        return ", ".join(f"`{json.dumps(one)}`" for one in arguments)
    if origin is list or (origin is tuple and arguments[-1:] == (...,)):
        return f"a list: {_kind(arguments[0])}"
    if origin is tuple:
        return " and ".join(_kind(one) for one in arguments)
    if origin is dict:
        kind = _kind(arguments[1])
        return (
            f"tables with names, {kind.partition(', ')[2]}"
            if "below" in kind
            else f"with names: {kind}"
        )
    if isinstance(hint, type) and issubclass(hint, Quantity):
        return f'a {hint.__name__.lower()}, such as `"{hint.sample}"`'
    if hint is AnySpec:
        return "a workload, below"
    if isinstance(hint, type) and (issubclass(hint, msgspec.Struct) or hint is AnyPlan):
        return "a table, below"
    if hint is Quantiles:
        return 'percentiles with times, such as `"0:10us,50:147us,100:2ms"`'
    return WORDS.get(hint, f"`{getattr(hint, '__name__', hint)}`")


def _default(field: Any) -> str:
    if field.required:
        return "–"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, msgspec.Struct):
        return "its defaults"
    if isinstance(value, Quantity):
        return f'`"{value}"`'
    if value is None or (isinstance(value, list | dict | tuple | str) and not value):
        return "none"
    shown = msgspec.json.encode(value, enc_hook=str).decode()
    return f"`{shown}`"


def _structs(hint: Any) -> Iterator[Any]:
    """The tables that a value has."""
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
