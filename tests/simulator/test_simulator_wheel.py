"""The simulator for users of pip: a wheel and a source distribution, each installed where nothing
else is."""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.processes import execute

PYTHON = Path(__file__).resolve().parents[2] / "simulator" / "python"
# Six packets within a rack, whose time is known to the picosecond.
SCENARIO = """
from dataclasses import replace
import qjump_sim as q
scheme = replace(q.Scheme.named("dctcp", q.FIG9), queue=q.DropTail(q.Packets(9)))
outcome = q.run(q.Scenario(q.FIG9, scheme, q.Flows([0], [0], [1], [6]), stop=q.ms(5)), watch=q.Watch(every_ps=q.us(1)))
print(q.__file__, int(outcome.fct[0]), len(outcome.series.at) > 10)
"""

pytestmark = [
    pytest.mark.nightly,  # the crate is compiled twice
    pytest.mark.skipif(
        not shutil.which("cargo"), reason="cargo is not installed: wheels need Rust"
    ),
]


def call(*argv: object, **more: str) -> str:
    """What a command says; its words if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = execute([str(word) for word in argv], env={**environment, **more})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fresh(folder: Path) -> Path:
    """The Python of a new environment, which has pip and nothing else."""
    call(sys.executable, "-m", "venv", folder)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with both, as README.md has them built: by maturin from a copy of the sources."""
    place = tmp_path_factory.mktemp("wheel")
    shutil.copytree(
        PYTHON.parent, place / "simulator", ignore=shutil.ignore_patterns("target", "__pycache__")
    )
    requires = tomllib.loads((PYTHON / "pyproject.toml").read_text())["build-system"]["requires"]
    python = fresh(place / "maker")
    call(python, "-m", "pip", "install", "--quiet", *requires)
    manifest = place / "simulator" / "python" / "Cargo.toml"
    target = str(place / "target")
    call(
        python.with_name("maturin"), "build", "--sdist", "--out", place / "dist", "--manifest-path", manifest,
        CARGO_TARGET_DIR=target,
    )  # fmt: skip
    return place / "dist"


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_a_fresh_environment_runs_a_scenario(built: Path, kind: str, tmp_path: Path) -> None:
    (distribution,) = built.glob(kind)
    python = fresh(tmp_path / "user")
    call(python, "-m", "pip", "install", "--quiet", distribution)
    where, time, sampled = call(python, "-I", "-c", SCENARIO).split()
    assert Path(where).is_relative_to(tmp_path)
    # 6 packets within a rack: 19.264 us.
    assert (int(time), sampled) == (19_264_000, "True")


def test_the_wheel_is_for_every_later_python(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert "-cp311-abi3-" in wheel.name
