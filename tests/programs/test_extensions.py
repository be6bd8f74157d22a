"""Entry points of other distributions: listed, loaded, refused with their distribution's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qjump_mn import extensions
from qjump_mn.errors import UsageError
from tests.support import distributions

GROUP = "qjump_mn.test_things"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes a distribution that is installed during the test: its name, its entry points, its
    modules."""

    def install(name: str, points: dict[str, str], **modules: str) -> None:
        monkeypatch.syspath_prepend(str(distributions.make(tmp_path, name, GROUP, points, modules)))

    return install


def test_entry_points_are_listed_by_name_and_loaded(install: Install) -> None:
    assert extensions.entries(GROUP) == {}
    points = {"rung": "ladders_things:rung", "ladder": "ladders_things:ladder"}
    install("ladders", points, ladders_things="rung, ladder = 'a rung', 'a ladder'")
    assert list(extensions.entries(GROUP)) == ["ladder", "rung"]
    assert extensions.load(GROUP, "rung") == "a rung"
    with pytest.raises(KeyError):
        extensions.load(GROUP, "step")


def test_two_distributions_with_the_same_name_are_refused(install: Install) -> None:
    install("snakes", {"ladder": "snakes:ladder"})
    install("ladders", {"ladder": "ladders:ladder"})
    with pytest.raises(
        UsageError, match=r"ladders and snakes both add 'ladder' to .*: uninstall one of them"
    ):
        extensions.entries(GROUP)


def test_name_that_we_have_is_refused(install: Install) -> None:
    install("ladders", {"ladder": "ladders:ladder"})
    with pytest.raises(
        UsageError, match=r"ladders adds 'ladder' to .*, which qjump-mn has itself: uninstall"
    ):
        extensions.entries(GROUP, ours=("ladder",))


@pytest.mark.parametrize(
    ("name", "module", "reason"),
    [
        ("absent", "import no_such_module_at_all", "ModuleNotFoundError"),
        ("raising", "raise SystemError('tea')", "SystemError: tea"),
        ("empty", "", "has no attribute 'ladder'"),
    ],
)
def test_extension_that_cannot_be_imported_is_one_sentence(
    install: Install, name: str, module: str, reason: str
) -> None:
    install(name, {"ladder": f"{name}_things:ladder"}, **{f"{name}_things": module})
    with pytest.raises(
        UsageError, match=rf"^{name} adds 'ladder' to .*{reason}.*: repair or uninstall"
    ):
        extensions.load(GROUP, "ladder")
