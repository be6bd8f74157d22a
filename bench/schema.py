"""Write docs/schema/: a JSON Schema of each kind of file, from the types that read them, for
editors that complete and check TOML.

    python3 bench/schema.py

Only `qjump-mn explain` checks whether names fit each other, and the ranges of numbers.
"""

from __future__ import annotations

import json
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import msgspec

from bench import reference
from qjump_mn.analysis.published_comparison import BesideSpec
from qjump_mn.model import units
from qjump_mn.model.experiment import ArmSpec, ExperimentSpec, FigureSpec, SweepSpec
from qjump_mn.model.scheme import SchemeSpec
from qjump_mn.model.topology import TopologySpec
from qjump_mn.model.units import Quantiles, Quantity
from qjump_mn.model.workload import AnySpec
from qjump_mn.programs import registry
from qjump_mn.programs.base import WorkloadSpec
from qjump_mn.resolve import defaults

FOLDER = ROOT / "docs/schema"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
FILES = {"experiment": ExperimentSpec, "scheme": SchemeSpec, "topology": TopologySpec}

PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}
FILLED: dict[type, tuple[str, ...]] = {
    ExperimentSpec: ("title", "topology", "link", "figure"),
    ArmSpec: ("label",),
    WorkloadSpec: ("label",),
    FigureSpec: ("plot", "workload", "arms"),
    SweepSpec: ("sets", "values"),
}
"""Keys that a file may leave out though the type has no default: qjump_mn/resolve/defaults.py
fills them in."""
PROGRAMS = tuple(registry.spec_type(name) for name in registry.OURS)
OF_OTHERS = {
    "description": "a program that an installed package brings",
    "type": "object",
    "properties": {"program": {"type": "string", "not": {"enum": list(registry.OURS)}}},
    "required": ["program"],
}
OVERLAID = {(ExperimentSpec, "link"), (ExperimentSpec, "schemes")}
"""Tables that override another file's, so all their keys are optional."""

Schema = dict[str, Any]


class Generator:
    """The schema of one kind of file; ``definitions`` are the tables met so far, by name: complete
    ones, and overrides, in which every key is optional."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def of(self, hint: Any, whole: bool = True) -> Schema:
        """Return the schema of a type."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if hint is AnySpec:
            return {"anyOf": [*(self.of(one, whole) for one in PROGRAMS), OF_OTHERS]}
        if origin in (typing.Union, types.UnionType):
            kinds = [self.of(one, whole) for one in arguments if one is not type(None)]
            return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.of(arguments[1], whole)}
        if origin is list or (origin is tuple and arguments[-1:] == (...,)):
            return {"type": "array", "items": self.of(arguments[0], whole)}
        if origin is tuple:
            items = [self.of(one, whole) for one in arguments]
            return {
                "type": "array",
                "prefixItems": items,
                "minItems": len(items),
                "maxItems": len(items),
            }
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            return self._table(hint, whole)
        return _quantity(hint) or {"type": PLAIN[hint]}

    def _table(self, spec: Any, whole: bool) -> Schema:
        name = spec.__name__ if whole else f"{spec.__name__}Change"
        if name not in self.definitions:
            self.definitions[name] = {}  # a table may have itself below
            self.definitions[name] = self._definition(spec, whole)
        return {"$ref": f"#/$defs/{name}"}

    def _definition(self, spec: Any, whole: bool) -> Schema:
        hints = typing.get_type_hints(spec)
        properties, required = {}, []
        if tag := spec.__struct_config__.tag_field:
            properties[tag] = {"const": spec.__struct_config__.tag}
            required.append(tag)
        optional = {
            name for kind, names in FILLED.items() if issubclass(spec, kind) for name in names
        }
        for field in msgspec.structs.fields(spec):
            found = self.of(hints[field.name], whole and (spec, field.name) not in OVERLAID)
            properties[field.encode_name] = {**found, **_default(field)}
            if field.required and field.name not in optional:
                required.append(field.encode_name)
        description = {"description": reference.words(spec)} if spec.__doc__ else {}
        needed = {"required": required} if whole and required else {}
        return {
            "type": "object",
            **description,
            "properties": properties,
            **needed,
            "additionalProperties": False,
        }


def schemas() -> dict[str, Schema]:
    """Return the schema of each kind of file."""
    found = {}
    for kind, spec in FILES.items():
        generator = Generator()
        top = generator.of(spec)
        if spec is ExperimentSpec:
            _add_what_loading_takes(generator)
        definitions = dict(sorted(generator.definitions.items()))
        found[kind] = {
            "$schema": DIALECT,
            "title": f"qjump-mn: {kind}",
            **top,
            "$defs": definitions,
        }
    return found


def _add_what_loading_takes(generator: Generator) -> None:
    """Add the keys of an experiment's file that are not part of the experiment:
    qjump_mn/resolve/loading.py."""
    generator.of(ExperimentSpec, whole=False)
    known = generator.definitions
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    preset = known["ExperimentSpecChange"]["properties"]
    preset |= {
        "about": {**text, "description": "a line that says what it is"},
        "like": {"type": "string", "description": "another preset, whose settings come before"},
        "without": {**texts, "description": "tables and settings of the file that it leaves out"},
    }
    known["ExperimentSpec"]["properties"] |= {
        "also": {**texts, "description": "second names"},
        "usual_preset": {**text, "default": defaults.PRESET},
        "beside": generator.of(BesideSpec),
        "presets": {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/ExperimentSpecChange"},
        },
    }
    known["SchemeSpecChange"]["properties"]["base"] = {
        **text,
        "description": "the scheme that it changes",
    }
    value = {"anyOf": [{"type": [*dict.fromkeys(PLAIN.values())]}, texts]}
    points = {
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": value},
    }
    for name in ("SweepSpec", "SweepSpecChange"):
        known[name]["properties"]["points"] = {
            **points,
            "description": (
                "values with names, in the place of sets and values: the settings of each"
            ),
        }


def _quantity(hint: Any) -> Schema | None:
    """Return the schema of text with a unit."""
    if hint is Quantiles:
        return {"type": "string", "examples": ["0:10us,50:147us,100:2ms"]}
    if isinstance(hint, type) and issubclass(hint, Quantity):
        words = "|".join(re.escape(unit) for unit in hint.units)
        return {
            "type": "string",
            "pattern": rf"^\s*[0-9]+(\.[0-9]+)?\s*({words})\s*$",
            "examples": [hint.sample],
        }
    return None


def _default(field: Any) -> Schema:
    if field.required:
        return {}
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value is None or isinstance(value, msgspec.Struct):
        return {}
    return {"default": msgspec.to_builtins(value, enc_hook=units.encode)}


def text(schema: Schema) -> str:
    """Format a schema as its file has it."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for kind, schema in schemas().items():
        (FOLDER / f"{kind}.json").write_text(text(schema))


if __name__ == "__main__":
    main()
