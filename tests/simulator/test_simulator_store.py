"""The store of simulated trials: it gives back what was run, and its key has all that the simulator's process
imports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from qjump_mn import extensions, resolve
from qjump_mn.backends.protocol import Ended
from qjump_mn.backends.simulator import Said, SimulatorBackend
from qjump_mn.errors import UsageError
from qjump_mn.install import environment
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import loading
from qjump_mn.toolbox import simulator
from tests.guest import trees
from tests.support import result_store

pytestmark = pytest.mark.guest

IMPORTED = """
import io, json, sys
from pathlib import Path
from qjump_mn.simulation import __main__ as process
for plan in Path(sys.argv.pop()).glob("*.json"):
    sys.stdin = io.TextIOWrapper(io.BytesIO(plan.read_bytes()))
    assert process.main() == 0, plan
files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
print(json.dumps(files))
"""


@pytest.fixture(scope="module")
def package() -> Path:
    trees.toolbox()
    return simulator.package(print)


@pytest.fixture
def backend(package: Path) -> Iterator[SimulatorBackend]:
    with SimulatorBackend() as made:
        yield made


def short(*settings: str) -> Plan:
    arms = ["workloads.search.count=10", "sweeps.load.values=[0.5]"]
    return resolve.plan("fig9", "smoke", [*arms, *settings], only=("search_dctcp",))


def run(backend: SimulatorBackend, plan: Plan, out: Path) -> Ended:
    (trial,) = plan.trials()
    backend.check(plan, print)
    return backend.run(trial, out, print)


def logged(session: Path) -> list[str]:
    return [line.removeprefix("simulator ") for line in (session / "log").read_text().splitlines()]


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_trial_and_the_check_of_its_plan_are_taken_whole(
    session: Path, backend: SimulatorBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(backend, short(), tmp_path / "first")
    second = run(backend, short(), tmp_path / "second")
    monkeypatch.setattr(result_store, "RERUN_SHARE", 1.0)
    run(backend, short(), tmp_path / "third")
    assert logged(session) == ["run"] * 2 + ["taken"] * 2 + ["compared"] * 2
    assert (first.exit_code, first.virtual_s) == (0, second.virtual_s)
    assert {"trial.json", "asbuilt/scenario.json"} < set(files_of(tmp_path / "first"))
    assert (
        files_of(tmp_path / "first")
        == files_of(tmp_path / "second")
        == files_of(tmp_path / "third")
    )


def test_what_is_refused_is_refused_again(session: Path, backend: SimulatorBackend) -> None:
    for _ in range(2):
        with pytest.raises(UsageError, match="the initial window of 0 packets"):
            backend.check(short("schemes.dctcp.simulator.transport.initial_window=0"), print)
    assert logged(session) == ["run", "taken"]


def test_what_was_ended_is_not_kept(
    session: Path, backend: SimulatorBackend, tmp_path: Path
) -> None:
    (trial,) = short().trials()
    backend.check(short(), print)
    backend.stop()
    assert backend.run(trial, tmp_path, print).exit_code == 5
    assert len(list((session / "kept").iterdir())) == 1


def test_what_decides_a_result_is_in_its_key(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(out: Path | None) -> Said:
        return Said(0, "")

    simulated = result_store.simulated
    simulated(Path("simulator"), b"input", work)
    simulated(Path("another"), b"input", work)
    simulated(Path("simulator"), b"another", work)
    simulated(Path("simulator"), b"input", work, session / "out")
    for function in ("simulator_code", "_installed"):
        with monkeypatch.context() as patch:
            patch.setattr(result_store, function, lambda: ["another"])
            simulated(Path("simulator"), b"input", work)
    assert logged(session) == ["run"] * 6
    simulated(Path("simulator"), b"input", work)
    assert logged(session)[6:] == ["taken"]


def test_with_programs_of_other_packages_nothing_is_kept(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "every", lambda group: ["a program"])
    result_store.simulated(Path("simulator"), b"input", lambda out: Said(0, ""))
    assert not list((session / "kept").iterdir())


def test_all_that_the_process_imports_is_in_the_key(package: Path, tmp_path: Path) -> None:
    for experiment in loading.names("experiments"):
        for preset in loading.presets(experiment):
            plan = resolve.plan(experiment, preset, [])
            if plan.shown.backends[0] == "simulator":
                (tmp_path / f"{experiment}-{preset}.json").write_bytes(msgspec.json.encode(plan))
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(package), str(environment.CHECKOUT)]),
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", IMPORTED, str(tmp_path)],
        env=variables, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = msgspec.json.decode(done.stdout, type=dict[str, str])
    ours = {name: path for name, path in files.items() if name.partition(".")[0] == "qjump_mn"}
    covered = {name: str(path) for name, path in result_store.simulator_modules().items()}
    assert {name: path for name, path in ours.items() if covered.get(name) != path} == {}
    # What is imported from nowhere else than this Python and its packages is named by their versions.
    elsewhere = [
        path
        for path in files.values()
        if path and not path.startswith((sys.prefix, sys.base_prefix))
    ]
    assert {path for path in elsewhere if path not in covered.values()} <= set(
        map(str, package.rglob("*"))
    )
    print("in the key, and not imported:", *sorted(set(covered) - set(ours)))
