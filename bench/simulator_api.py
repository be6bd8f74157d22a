"""Write docs/simulator-api.md: every name of the Python package `qjump_sim`, from its sources.

    python3 bench/simulator_api.py [--write]

Without `--write`, print it. The page has the first sentence about each name; the site
has the whole text (docs/conf.py). The sources are read, not imported, so nothing
has to be compiled.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks

PAGE, PACKAGE = ROOT / "docs/simulator-api.md", ROOT / "simulator/python/src/qjump_sim"
PARTS = {
    "scenario": "Scenarios",
    "network": "Networks",
    "traffic": "Traffic",
    "scheme": "Schemes",
    "law": "Laws of your own",
    "queues": "Queues",
    "apps": "Applications",
    "outcome": "Outcomes",
    "watch": "Instruments",
    "trace": "Packets",
    "units": "Units",
    "__init__": "Named networks",
}
"""Modules in the order of the page; users import `qjump_sim.apps` as a module of its own."""


def main(arguments: list[str]) -> None:
    """Print or write."""
    text = "\n".join(page()).strip("\n")
    if "--write" in arguments:
        marks.write(PAGE, "simulator_api", text)
    else:
        print(text)


def page(*, whole: bool = False) -> Iterator[str]:
    """Yield the lines of the page; ``whole``: with all paragraphs, fields and signatures."""
    public = exported()
    for module, heading in PARTS.items():
        tree = _tree(module)
        yield from (f"## {heading}", "")
        if module == "apps":
            yield from ("All of these are in `qjump_sim.apps`.", "")
        for node, about in _with_text_below(tree.body):
            name = _name(node)
            if name and (name in public or (module == "apps" and not name.startswith("_"))):
                yield from _entry(node, name, about) if whole else [_brief(node, name, about)]
        if not whole:
            yield ""


def in_full(text: str) -> str:
    """Return the text of the page with all paragraphs, fields and signatures."""
    brief = "\n".join(page()).strip("\n")
    return text.replace(brief, "\n".join(page(whole=True)).strip("\n"))


def exported() -> set[str]:
    """Return the names that `from qjump_sim import *` brings."""
    for node in _tree("__init__").body:
        if isinstance(node, ast.Assign) and _name(node) == "__all__":
            return set(ast.literal_eval(node.value))
    raise SystemExit(f"{PACKAGE}/__init__.py has no __all__")


def _tree(module: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{module}.py").read_text())


def _with_text_below(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Yield statements with the string below each, which documents fields and constants."""
    for node, below in zip(body, [*body[1:], None], strict=True):
        is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        yield node, _plain(str(below.value.value)) if is_text else ""  # type: ignore[union-attr]


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return node.name
    if (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
    ):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return ""


def _entry(node: ast.stmt, name: str, about: str) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef):
        yield from (
            f"### `{name}{_signature(node)}`",
            "",
            _plain(ast.get_docstring(node) or ""),
            "",
        )
    elif isinstance(node, ast.ClassDef):
        is_dict = any(ast.unparse(base) == "TypedDict" for base in node.bases)
        about = ("A dict. " if is_dict else "") + _plain(ast.get_docstring(node) or "")
        yield from (f"### `{name}`", "", about, "")
        yield from _members(node)
    else:
        value = getattr(node, "value", None)
        yield from (f"### `{name}`", "", about or f"`{ast.unparse(value)}`" if value else about, "")


def _brief(node: ast.stmt, name: str, about: str) -> str:
    """Return an entry's first sentence, with its example, as an item of a list."""
    _, _, text, *_ = _entry(node, name, about)
    sentence = re.split(r"(?<=\.) (?=[A-Z`])|\n\n", text.removeprefix("A dict. "))[0]
    example = "; ".join(f"`{line}`" for line in re.findall(r"^>>> (.*)", text, re.MULTILINE))
    return f"- `{name}`: {sentence}" + (f" Example: {example}" if example else "")


def _is_property(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(one) == "property" for one in node.decorator_list)


def _members(node: ast.ClassDef) -> Iterator[str]:
    lines = []
    for member, about in _with_text_below(node.body):
        name = _name(member)
        if not name or (name.startswith("_") and name != "__init__"):
            continue
        if isinstance(member, ast.FunctionDef):
            is_value = _is_property(member)
            shown = name if is_value else f"{name}{_signature(member)}"
            about = _plain(ast.get_docstring(member) or "")
            if is_value and member.returns:
                shown += f": {ast.unparse(member.returns)}"
        else:
            shown = ast.unparse(member)
        lines.append(f"- `{shown}`" + (f": {about}" if about else ""))
    yield from lines
    if lines:
        yield ""


def _signature(node: ast.FunctionDef) -> str:
    arguments = node.args
    if arguments.args and arguments.args[0].arg in ("self", "cls"):
        arguments = ast.arguments(
            posonlyargs=arguments.posonlyargs, args=arguments.args[1:], vararg=arguments.vararg,
            kwonlyargs=arguments.kwonlyargs, kw_defaults=arguments.kw_defaults,
            kwarg=arguments.kwarg, defaults=arguments.defaults,
        )  # fmt: skip
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(arguments)}){returns}"


def _plain(text: str) -> str:
    """Return a docstring as one line for each paragraph; examples stay as they are."""
    parts = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(
        f"```pycon\n{part}\n```" if part.startswith(">>>") else " ".join(part.split())
        for part in parts
    )


if __name__ == "__main__":
    main(sys.argv[1:])
