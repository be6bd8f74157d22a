"""A test session: what it takes from earlier ones, which tests go to one worker, what it says at
its end."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qjump_mn.install import environment

FACTS = "/".join(("tests", "test_facts.py"))
TESTS = """
import os
import pytest
from tests.support import facts, result_store

result_store.RERUN_SHARE = float(os.environ["AGAIN"])

def test_a_fact():
    facts.established("sum", "key", lambda: None)

@pytest.mark.fresh
def test_the_machine():
    facts.established("machine", "key", lambda: None)

def test_what_is_wrong():
    facts.established("mistake", "key", lambda: 1 / 0)

@pytest.mark.parametrize("number", range(6))
def test_skipped(number):
    pytest.skip("no ladder" if number else "no rope")
"""
GROUPS = """
import os
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("kernel", ["6.12", "6.1", "7"])
def test_group(kernel, number):
    with open(os.environ["WHO"], "a") as who:
        who.write(f"{Path(__file__).stem} {kernel} {os.environ['PYTEST_XDIST_WORKER']}\\n")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with this one's conftest.py and settings, a cache of its own and few tests."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / FACTS).write_text(TESTS)
    shutil.copy(environment.CHECKOUT / "tests/conftest.py", tmp_path / "tests")
    shutil.copy(environment.CHECKOUT / "pyproject.toml", tmp_path)
    return tmp_path


def session(project: Path, *options: str, **variables: str) -> list[str]:
    """The lines that a session prints."""
    return started(project, *options, **variables).stdout.splitlines()


def started(project: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A session, after its end."""
    values = {
        "PYTHONPATH": str(environment.CHECKOUT),
        "QJUMP_MN_CACHE": str(project / "cache"),
        "PYTEST_ADDOPTS": "",
        "AGAIN": "0",
        **variables,
    }
    argv = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        argv,
        cwd=project,
        env={**os.environ, **values},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    print(done.stdout, done.stderr)
    return done


def counts_of(lines: list[str]) -> dict[str, str]:
    """What the summary says of each kind of result."""
    return dict(line.split(": ", 1) for line in lines if " run, " in line)


@pytest.mark.parametrize("workers", [(), environment.WORKERS])
def test_a_fact_is_found_out_once_and_a_mistake_again_and_again(
    project: Path, workers: tuple[str, ...]
) -> None:
    run, taken = (
        "1 run, 0 from the store, 0 of them run again and equal",
        "0 run, 1 from the store, 0 of them run again and equal",
    )
    variables = {"PYTEST_XDIST_AUTO_NUM_WORKERS": "2"}
    for sentence in (run, taken):
        lines = session(project, *workers, **variables)
        assert counts_of(lines) == {"sum": sentence, "machine": run, "mistake": run}
        assert "1 failed, 2 passed, 6 skipped" in lines[-1]
    assert (
        counts_of(session(project, *workers, **variables, AGAIN="1"))["sum"]
        == "0 run, 1 from the store, 1 of them run again and equal"
    )
    lines = session(project, *workers, "--all", **variables)
    assert counts_of(lines) == dict.fromkeys(["sum", "machine", "mistake"], run)


def test_what_is_skipped_is_counted_by_its_reason(project: Path) -> None:
    lines = session(project)
    start = lines.index("skipped: 6, by reason:")
    assert lines[start + 1 : start + 3] == ["    5  no ladder", "    1  no rope"]


@pytest.mark.parametrize("workers", [(), environment.WORKERS])
def test_a_skip_that_is_not_allowed_fails_and_is_named(
    project: Path, workers: tuple[str, ...]
) -> None:
    options = ("--allowed-skips=allowed", "-k", "skipped", *workers)
    codes, lines = [], list[str]()
    for allowed in ("# A comment.\nno l.*\nno rop\n", "no l.*\nno rope\n"):
        (project / "allowed").write_text(allowed)
        done = started(project, *options, PYTEST_XDIST_AUTO_NUM_WORKERS="2")
        codes.append(done.returncode)
        lines += [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert codes == [1, 0]
    assert lines == [f"FAILED {FACTS}::test_skipped[0] - no skip is allowed for: no rope"]


def test_ci_allows_the_skips_of_the_night_and_of_a_container() -> None:
    text = (environment.CHECKOUT / ".ci/skips").read_text()
    patterns = [line for line in text.splitlines() if line and not line.startswith("#")]

    def is_allowed(reason: str) -> bool:
        return any(re.fullmatch(pattern, reason) for pattern in patterns)

    assert is_allowed("it takes long: ./bootstrap test --nightly")
    assert is_allowed("this kernel allows no io_uring") and is_allowed(
        "the sweep is for `pytest -m slow`"
    )
    assert not is_allowed("the toolbox is not built") and not is_allowed("needs root")
    assert " --allowed-skips=.ci/skips " in (environment.CHECKOUT / ".ci/run").read_text()


def test_a_fact_that_is_no_more_is_forgotten(project: Path) -> None:
    session(project, "-k", "fact")
    changed = TESTS.replace('"key", lambda: None', '"key", lambda: 1 / 0')
    (project / FACTS).write_text(changed)
    assert "1 failed" in session(project, "-k", "a_fact", AGAIN="1")[-1]
    assert "1 failed" in session(project, "-k", "a_fact")[-1]


def test_the_tests_of_a_module_with_one_kernel_go_to_one_worker(project: Path) -> None:
    for name in ("test_one", "test_two"):
        (project / f"tests/{name}.py").write_text(GROUPS)
    who = project / "who"
    session(
        project,
        *environment.WORKERS,
        "-k",
        "group",
        PYTEST_XDIST_AUTO_NUM_WORKERS="2",
        WHO=str(who),
    )
    lines = [line.split() for line in who.read_text().splitlines()]
    assert len(lines) == 48 and {worker for *_, worker in lines} == {"gw0", "gw1"}
    assert (
        len({(module, kernel) for module, kernel, _ in lines})
        == len({tuple(line) for line in lines})
        == 6
    )


def test_nothing_is_left_of_a_session(project: Path, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    session(project, TMPDIR=str(tmp_path / "temporary"))
    assert not list((tmp_path / "temporary").glob("qjump-mn-*"))
