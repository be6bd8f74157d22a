"""A test session: what it takes from earlier ones, which tests go to which worker, what it says at
its end.

Results of guests and simulated trials (result_store.py) and facts (facts.py) are kept in the
project's cache, in tests/results. `--all` takes none of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from qjump_mn import cache, guest, toolbox
from qjump_mn.backends import simulator
from qjump_mn.toolbox import machines
from tests.support import browser as browsers
from tests.support import result_store
from tests.support.browser import Browser
from tests.support.facts import afresh
from tests.support.result_store import GUEST, SIMULATOR, VARIABLE
from tests.support.user_files import Write

result_store.install(guest)
result_store.install(simulator)

KEPT = 4000
"""So many results and facts stay, those that were used last. A session has a tenth of that."""

SUMMARY = {GUEST: "guest results", SIMULATOR: "simulated trials and checks of plans"}
"""What the summary calls the kinds of work that are not facts; they come first."""

_FOLDER = pytest.StashKey[Path]()
KERNELS = frozenset({"6.12", "6.1", "7"})
"""Parameters that name a kernel, see tests/guest/checks.py."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        help="run everything afresh: take no result that an earlier session kept",
    )
    parser.addoption("--nightly", action="store_true", help="run those that take long too")
    parser.addoption(
        "--allowed-skips",
        type=Path,
        metavar="FILE",
        help="fail for a skip whose reason matches no line of this file",
    )


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return  # the variable is inherited
    folder = config.stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="qjump-mn-tests-"))
    for name in ("stored", "fresh"):
        (folder / name).mkdir()
    root = next((root for root in cache.roots() if os.access(root, os.W_OK | os.X_OK)), None)
    if root and not config.getoption("--all"):
        (root / "tests/results").mkdir(parents=True, exist_ok=True)
        (folder / "stored/kept").symlink_to(root / "tests/results")
    os.environ[VARIABLE] = str(folder / "stored")


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(_FOLDER, None)
    if folder is None:
        return
    del os.environ[VARIABLE]
    if (folder / "stored/kept").exists():
        _prune((folder / "stored/kept").resolve())
    shutil.rmtree(folder)


def _prune(kept: Path) -> None:
    last_used = sorted(kept.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in last_used[KEPT:]:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _store_in_processes() -> Iterator[None]:
    """Python processes that tests start look into the store, too."""
    tests = Path(__file__).resolve().parent
    paths = [str(tests / "startup"), str(tests.parent), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        yield


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser without a window."""
    path = browsers.found()
    if path is None:
        pytest.skip("there is no Chromium; bootstrap test installs it where apt has it")
    with browsers.started(path, tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session with an empty store, which does nothing again, and its other folder."""
    (tmp_path / "session/kept").mkdir(parents=True)
    (tmp_path / "fresh").mkdir()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "session"))
    monkeypatch.setattr(result_store, "RERUN_SHARE", 0.0)
    return tmp_path / "session"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files into a user's own folder, which is ``tmp_path``."""
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference machine's file: the one that is named, else it is written now."""
    named = Path(os.environ.get(machines.VARIABLE, "none"))
    if named.is_file():
        return named
    if os.geteuid() or toolbox.found() is None:
        pytest.skip("only root makes chroots, and of the toolbox a machine file")
    path = tmp_path_factory.mktemp("machine") / "machine.tar.xz"
    argv = [sys.executable, "-P", "-m", "qjump_mn.run", "machine", "export", str(path)]
    subprocess.run(argv, check=True, capture_output=True)
    return path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What a test that is marked `fresh` runs, and its fixtures, is run whatever is kept."""
    with afresh() if item.get_closest_marker("fresh") else nullcontext():
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes hours is for those who ask for it. For workers: the longest first, so that none is
    left with one at the end."""
    if not config.getoption("--nightly"):
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(
                    pytest.mark.skip(reason="it takes long: ./bootstrap test --nightly")
                )
    if hasattr(config, "workerinput"):
        items.sort(
            key=lambda item: (
                not item.get_closest_marker("smoke"),
                not item.get_closest_marker("guest"),
            )
        )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Which tests go to a worker together: see `group`. xdist's marker does nothing in pytest
    9.2."""
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = group
    return scheduler


def group(nodeid: str) -> str:
    """The tests of a module share its fixtures, those of a kernel its boot; the smoke runs share
    nothing."""
    module, _, name = nodeid.partition("::")
    if module.endswith("test_smoke.py"):
        return nodeid
    kernel = next((word for word in re.split(r"[][-]", name)[1:] if word in KERNELS), "")
    return f"{module} {kernel}"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    counts = Counter(
        line for log in config.stash[_FOLDER].glob("*/log") for line in log.read_text().splitlines()
    )
    kinds = {line.rpartition(" ")[0] for line in counts}
    for kind in sorted(kinds, key=lambda kind: (kind not in SUMMARY, kind)):
        run, taken, compared = (counts[f"{kind} {how}"] for how in ("run", "taken", "compared"))
        from_store = f"{taken + compared} from the store, {compared} of them run again and equal"
        terminalreporter.write_line(f"{SUMMARY.get(kind, kind)}: {run} run, {from_store}")
    skipped = Counter(reason for _, reason in skips(config))
    terminalreporter.write_line(
        f"skipped: {sum(skipped.values())}{', by reason:' if skipped else ''}"
    )
    for reason, count in skipped.most_common():
        terminalreporter.write_line(f"{count:5}  {reason}")
    for test, reason in forbidden_skips(config):
        terminalreporter.write_line(f"FAILED {test} - no skip is allowed for: {reason}", red=True)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and forbidden_skips(session.config):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def skips(config: pytest.Config) -> list[tuple[str, str]]:
    """The tests that were skipped, or modules, each with the reason."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    return [(report.nodeid, report.longrepr[2].removeprefix("Skipped: ")) for report in reports]


def forbidden_skips(config: pytest.Config) -> list[tuple[str, str]]:
    """Those of `skips` whose reason is not in the file of allowed ones; none without such a
    file."""
    path = config.getoption("--allowed-skips")
    if path is None:
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    patterns = [re.compile(line, re.DOTALL) for line in lines if line and not line.startswith("#")]
    return [
        (test, reason)
        for test, reason in skips(config)
        if not any(pattern.fullmatch(reason) for pattern in patterns)
    ]
