"""With a machine file and a folder of wheels nothing is needed but Linux and Python: in plain
chroots, as a user without rights, without a network, /proc, a folder for temporary files or a home,
in 2 GB of memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qjump_mn import cache
from qjump_mn.install import environment, installation
from qjump_mn.process import temp_dirs
from qjump_mn.toolbox import download, machine_file, machines
from tests.support import chroots, facts

pytestmark = [pytest.mark.root, pytest.mark.nightly, pytest.mark.timeout(3600)]

ONE_TRIAL = "the results are those of the reference run in the 1 trial that both have"
_SOURCES = (environment, installation, cache, temp_dirs, download, machine_file, machines)


def _key(**_: object) -> Iterator[str]:
    """The machine, the wheels, and the code that takes them."""
    yield machines.read().sha256
    yield from (
        path.read_text()
        for path in (environment.LOCK, environment.CHECKOUT / "bootstrap", Path(chroots.__file__))
    )
    yield from (cache.hash_of_code(Path(str(module.__file__))) for module in _SOURCES)


@facts.of("runs anywhere", _key)
def _shown(name: str, machine: Path) -> None:
    done = chroots.tried(chroots.SYSTEMS[name], machine, ["idle"])
    assert "takes the wheels from /srv/qjump-mn-wheels" in done.said
    assert "takes the machine from /srv/qjump-mn-machine.tar.xz" in done.said
    assert ONE_TRIAL in done.reference


@pytest.mark.parametrize("name", chroots.SYSTEMS)
def test_a_plain_system_has_the_reference_results(name: str, machine: Path) -> None:
    _shown(name=name, machine=machine)


def test_so_has_a_python_that_is_not_debians(machine: Path) -> None:
    others = chroots.others()
    if not others:
        pytest.skip(
            "no Python but Debian's is here: pyenv's, uv's, or a folder in $QJUMP_MN_PYTHONS"
        )
    assert ONE_TRIAL in chroots.tried(others[0], machine, ["idle"]).reference


def test_so_has_a_container_without_privileges(machine: Path) -> None:
    tried = chroots.tried(chroots.SYSTEMS["debian13"], machine, ["idle"], is_container=True)
    assert ONE_TRIAL in tried.reference
