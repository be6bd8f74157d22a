"""The executor is short and independent of the package, and a job has only what is carried out."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import qjump_mn
from qjump_mn import guest, resolve, toolbox
from qjump_mn.backends.guest import GuestBackend
from qjump_mn.executor import steps
from qjump_mn.guest import Job, Setup
from qjump_mn.guest.job import encode_job, encode_setup
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.resolve import loading
from qjump_mn.steps import openvswitch
from qjump_mn.steps.compile import trial_steps
from qjump_mn.steps.network import bring_up
from qjump_mn.toolbox import Tree, build, overlay
from qjump_mn.toolbox.cpio import Node
from tests.support.processes import execute

PACKAGE = Path(qjump_mn.__file__).parent
EXECUTOR = PACKAGE / "executor"
MAX_STATEMENTS = 670
"""Of the executor, without docstrings: so that it can be read in one sitting."""
OTHERS = {"msgspec", "mininet"}
"""What it may import besides the standard library and itself."""


class CaughtError(Exception):
    """Carries what would have gone to the guest; nothing is run."""


def python_files(tree: Tree) -> dict[str, Node]:
    """Our own files in the guest's image, without what is built of C and Rust."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("tc_plugins", "native_programs"):
            patch.setattr(build, name, lambda *_: {})
        return overlay.nodes(tree)


def job(trial: Trial) -> bytes:
    """What the guest is given for a trial."""
    with pytest.MonkeyPatch.context() as patch:

        def caught(image: object, setup: Setup, job: Job, *_: object, **__: object) -> None:
            raise CaughtError(encode_setup(setup) + encode_job(job))

        patch.setattr(guest, "run", caught)
        machines = GuestBackend()
        machines._image = None  # type: ignore[assignment]
        with pytest.raises(CaughtError) as error:
            machines.run(trial, Path("nowhere"), print)
    encoded: bytes = error.value.args[0]
    return encoded


def fingerprint(tree: Tree) -> dict[str, str]:
    """Hashes of all that goes into the guest from the package that is imported; run in copies of
    it, too."""
    hashes = {name: _hash(node) for name, node in python_files(tree).items()}
    plan = resolve.plan("fig3a", "smoke", [])
    hashes |= {
        f"job {trial.name}": hashlib.sha256(job(trial)).hexdigest() for trial in plan.trials()
    }
    return hashes


def _hash(node: Node) -> str:
    content = node.content.read_bytes() if isinstance(node.content, Path) else node.content or b""
    return hashlib.sha256(str(node.mode).encode() + content).hexdigest()


def fingerprint_of_copy(folder: Path, tree: Tree, *, executor: bool) -> dict[str, str]:
    """That of a copy with a comment at the end of each Python file of the executor, or of each
    other one."""
    shutil.copytree(PACKAGE, folder / "qjump_mn", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("experiments", "schemes", "topologies"):
        (folder / name).symlink_to(PACKAGE.parent / name)
    for source in (folder / "qjump_mn").rglob("*.py"):
        if (folder / "qjump_mn/executor" in source.parents) == executor:
            source.write_text(source.read_text() + "# a comment\n")
    code = (
        "import json, sys; from pathlib import Path; from tests.executor.test_executor import *; "
        "print(PACKAGE, json.dumps(fingerprint(Tree(Path(sys.argv[1])))), sep='\\n')"
    )
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{PACKAGE.parent}"}
    done = execute([sys.executable, "-P", "-c", code, str(tree.root)], env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    package, hashes = done.stdout.splitlines()
    assert package == str(folder / "qjump_mn")
    return msgspec.json.decode(hashes, type=dict[str, str])


def emulated() -> Iterator[Plan]:
    """The smoke preset of every experiment that a kernel runs."""
    for experiment in loading.names("experiments"):
        plan = resolve.plan(experiment, "smoke", [])
        if "guest" in plan.shown.backends:
            yield plan


def renamed(value: Any) -> Any:
    """A plan's part with another text in every label, title and field that says itself not to be
    run."""
    if isinstance(value, tuple):
        return tuple(renamed(entry) for entry in value)
    if isinstance(value, dict):
        return {key: renamed(entry) for key, entry in value.items()}
    if not isinstance(value, msgspec.Struct):
        return value
    # What is watched changes the job, though no result.
    shown = {*getattr(value, "NOT_RUN", ()), "label", "title"} - {"watch"}
    changes = {
        name: other(getattr(value, name)) if name in shown else renamed(getattr(value, name))
        for name in value.__struct_fields__
    }
    return replace(value, **changes)


def other(value: str | bool | float | None) -> str | bool | float:
    """Another value of its type."""
    if isinstance(value, bool):
        return not value
    return f"another {value}" if isinstance(value, str) else (value or 0.0) + 7.5


def statements(source: Path) -> int:
    """The number of a module's statements, without docstrings."""
    nodes = [node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.stmt)]
    return sum(
        not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in nodes
    )


def test_executor_is_short() -> None:
    counts = {source.name: statements(source) for source in EXECUTOR.rglob("*.py")}
    assert "agent.py" in counts
    assert sum(counts.values()) <= MAX_STATEMENTS, counts


@pytest.mark.parametrize("source", sorted(EXECUTOR.rglob("*.py")), ids=lambda source: source.stem)
def test_executor_imports_nothing_else_of_the_package(source: Path) -> None:
    for node in ast.walk(ast.parse(source.read_text())):
        modules: list[str] = []
        if isinstance(node, ast.ImportFrom):
            assert node.level <= 1, "it leaves the package"
            modules = [str(node.module)] if not node.level else []
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        assert {module.partition(".")[0] for module in modules} <= sys.stdlib_module_names | OTHERS


def test_guest_has_none_of_our_python_but_the_executor(tmp_path: Path) -> None:
    if toolbox.found() is None:
        pytest.skip("the toolbox, whose Python compiles the executor, is not built")
    tree = toolbox.toolbox()
    now = fingerprint(tree)
    assert fingerprint_of_copy(tmp_path / "outside", tree, executor=False) == now
    changed = fingerprint_of_copy(tmp_path / "inside", tree, executor=True)
    different = {name for name in now if changed[name] != now[name]}
    assert {name for name in different if name.endswith(".py")} == {
        f"opt/qjump-mn/executor/{source.relative_to(EXECUTOR)}" for source in EXECUTOR.rglob("*.py")
    }
    assert not any(name.startswith("job ") for name in different)


def test_labels_and_titles_are_not_in_a_trials_job() -> None:
    for plan in emulated():
        for trial in plan.trials():
            another = renamed(trial)
            assert another != trial
            assert job(another) == job(trial)


def test_steps_survive_json() -> None:
    for plan in emulated():
        for trial in plan.trials():
            for compiled in (
                trial_steps(trial),
                bring_up(trial.network.skeleton()),
                openvswitch.start(),
            ):
                assert steps.decode(msgspec.json.decode(msgspec.json.encode(compiled))) == compiled
                assert steps.decode(msgspec.to_builtins(compiled)) == compiled
