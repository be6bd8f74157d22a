"""Programs by name: ours without numpy, and those of packages that somebody else has installed."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from qjump_mn.programs import registry
from qjump_mn.programs.measures_api import Measures

CHECKOUT = Path(__file__).resolve().parents[2]

PROGRAM = """
from typing import ClassVar
from qjump_mn.programs.base import FlowSpec, Program, WorkloadPlan
from qjump_mn.programs.launch import Launch


class EchoPlan(WorkloadPlan, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="echo"):
    MEASURES: ClassVar = {"lines": "lines"}
    times: int

    def describe(self):
        return f"echo, {self.times} times"


class Echo(FlowSpec, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="echo"):
    times: int = 1

    def planned(self, common, *, uses_levels, duration_ns):
        return EchoPlan(**common, times=self.times)


def launches(plan, trial):
    for source, _ in plan.flows:
        yield Launch("probe", source, ("echo", "hello"), f"{plan.name}-{source}.echo.txt")


PROGRAM = Program(
    spec=Echo,
    plan=EchoPlan,
    columns={"line": "string"},
    launches=launches,
    table=lambda plan, trial, read: {"line": [read(launch.output) for launch in launches(plan, trial)]},
    measures="numbers_of_somebody:MEASURES",
)
"""

MEASURES = """
import pyarrow.compute as pc
from qjump_mn.programs.base import Measure
from qjump_mn.programs.measures_api import Measures

MEASURES = Measures(values=lambda table, plan, trial, facts: {"lines": float(table.num_rows)})


def jitter(table, plan, trial, facts):
    return pc.stddev(table["latency_us"]).as_py() / 1e3


JITTER = Measure("jitter, ms", jitter)
"""

SHOW = """
from qjump_mn.analysis import claims
from qjump_mn import resolve
from qjump_mn.programs import registry
plan = resolve.plan("fig3a", "smoke", [])
claims.parse("idle.ping.jitter_ms", "number", plan, "here")
print(registry.headings(plan.arms[0].workloads[0])["jitter_ms"])
print(registry.names()[-1])
"""

CHECK = """
import sys
from qjump_mn.errors import UsageError
from qjump_mn.programs import registry
try:
    registry.check(sys.argv[1:])
except UsageError as error:
    print(error)
"""


def install(
    site: Path, name: str, programs: dict[str, str], measures: dict[str, str] | None = None
) -> None:
    """What pip leaves of a package's metadata."""
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = (("qjump_mn.programs", programs), ("qjump_mn.measures", measures or {}))
    lines = [
        line
        for group, entries in groups
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")


def python(script: str, site: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{CHECKOUT}"}
    argv = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(
        argv, env=environment, cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "somebodys.py").write_text(PROGRAM)
    (tmp_path / "numbers_of_somebody.py").write_text(MEASURES)
    return tmp_path


def test_ours_have_one_name_each_and_measures() -> None:
    for name in registry.OURS:
        program = registry._PROGRAMS.by_name[name]
        assert program.name == name == program.spec.__struct_config__.tag
        assert isinstance(pkgutil.resolve_name(program.measures), Measures)
        folder = CHECKOUT / "qjump_mn/programs" / name
        # tests/simulator runs them.
        assert bool(program.simulated) == (folder / "simulated.py").exists()
        assert registry.spec_type(name) is program.spec
        assert set(program.columns), name


def test_planning_imports_no_library_of_numbers(tmp_path: Path) -> None:
    script = "import sys, qjump_mn.resolve as r; r.plan('fig3b', 'smoke', []); print(*sys.modules)"
    assert not {"numpy", "pyarrow", "qjump_sim", "matplotlib"} & set(
        python(script, tmp_path).split()
    )


def test_a_package_brings_a_program_and_a_measure_of_ours(site: Path) -> None:
    install(
        site,
        "somebodys",
        {"echo": "somebodys:PROGRAM"},
        {"ping.jitter_ms": "numbers_of_somebody:JITTER"},
    )
    assert python(SHOW, site).splitlines() == ["jitter, ms", "echo"]


UNIMPORTABLE = "cannot be imported ("


@pytest.mark.parametrize(
    ("programs", "measures", "user", "reason"),
    [
        ({"ping": "somebodys:PROGRAM"}, {}, "ping", "qjump-mn already has a program of this name"),
        ({"reply": "somebodys:PROGRAM"}, {}, "reply", "its spec and its plan have the tags echo"),
        (
            {"echo": "somebodys:NOTHING"},
            {},
            "echo",
            f"somebodys:NOTHING {UNIMPORTABLE}AttributeError: module 'somebodys'",
        ),
        (
            {"echo": "nowhere:PROGRAM"},
            {},
            "echo",
            f"nowhere:PROGRAM {UNIMPORTABLE}ModuleNotFoundError: No module named 'nowhere')",
        ),
        (
            {"echo": "somebodys:Echo"},
            {},
            "echo",
            "somebodys:Echo is not a qjump_mn.programs.base.Program",
        ),
        (
            {},
            {"pong.jitter_ms": "numbers_of_somebody:JITTER"},
            "pong",
            "there is no program 'pong' (a measure",
        ),
        (
            {},
            {"ping.p50_ms": "numbers_of_somebody:JITTER"},
            "ping",
            "program 'ping' already has a measure 'p50_ms'",
        ),
        (
            {},
            {"ping.p50-ms": "numbers_of_somebody:JITTER"},
            "ping",
            "'p50-ms' is not a measure's name",
        ),
        (
            {},
            {"ping.jitter_ms": "numbers_of_somebody:jitter"},
            "ping",
            "numbers_of_somebody:jitter is not a qjump_mn.programs.base.Measure",
        ),
    ],
)
def test_what_cannot_be_used_is_one_sentence_with_its_package(
    programs: dict[str, str], measures: dict[str, str], user: str, reason: str, site: Path
) -> None:
    install(site, "somebodys", programs, measures)
    sentence = python(CHECK, site, user, "iperf").strip()
    group, name = ("programs", *programs) if programs else ("measures", *measures)
    assert sentence.startswith(f"somebodys adds '{name}' to qjump_mn.{group}, but {reason}"), (
        sentence
    )
    assert sentence.endswith(": repair or uninstall somebodys")
    assert python(CHECK, site, "iperf") == "", "whoever does not use it does not hear of it"


def test_two_packages_with_one_name_are_both_named(site: Path) -> None:
    install(site, "first", {"echo": "somebodys:PROGRAM"})
    install(site, "second", {"echo": "somebodys:PROGRAM"})
    sentence = python(CHECK, site, "echo")
    assert sentence.startswith(
        "second adds 'echo' to qjump_mn.programs, but first already has a program of this name"
    )


def test_a_plan_is_of_the_program_that_its_tag_names() -> None:
    from qjump_mn import resolve

    (ping,) = resolve.plan("fig3a", "smoke", []).arms[0].workloads
    assert registry.of(ping).name == "ping"
    assert type(
        msgspec.json.decode(msgspec.json.encode(ping), type=registry.of(ping).plan)
    ) is type(ping)


def test_measures_that_do_not_load_are_one_sentence_with_their_package(site: Path) -> None:
    install(site, "somebodys", {"echo": "somebodys:PROGRAM"})
    (site / "numbers_of_somebody.py").write_text("import a_library_that_is_not_there")
    script = """
import somebodys
from qjump_mn.errors import UsageError
from qjump_mn.programs import registry
plan = somebodys.EchoPlan(
    name="echo", label="", flows=(("h1", "h2"),), level=0, window_bytes=None, port=1, times=1
)
print([launch.argv for launch in registry.of(plan).launches(plan, None)])
try:
    registry.measures(plan)
except UsageError as error:
    print(error)
"""
    first, second = python(script, site).splitlines()
    assert first == "[('echo', 'hello')]"
    assert second == (
        "somebodys adds 'echo' to qjump_mn.programs, but numbers_of_somebody:MEASURES cannot be "
        "imported (No module named 'a_library_that_is_not_there'): repair or uninstall somebodys"
    )
