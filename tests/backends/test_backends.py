"""The registry of backends: ours, another distribution's, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qjump_mn import session
from qjump_mn.backends import registry
from qjump_mn.cli import explain
from qjump_mn.errors import UsageError
from tests.support import distributions
from tests.support.screen import Screen
from tests.support.user_files import FIG3A, Write

CLOUD = """
class Cloud:
    name, clock, repeats_anywhere, parallel = "cloud", "real", True, 7

class Misnamed(Cloud):
    name = "fog"

class Silent:
    name, clock = "silent", "real"
"""


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "cloud": "cloud_backends:Cloud",
        "mist": "cloud_backends:Misnamed",
        "silent": "cloud_backends:Silent",
    }
    folder = distributions.make(
        tmp_path, "clouds", registry.GROUP, points, {"cloud_backends": CLOUD}
    )
    monkeypatch.syspath_prepend(str(folder))


def request_of(experiment: str, *, backend: str = "") -> session.Request:
    return session.Request(experiment, "smoke", backend=backend)


def show(request: session.Request) -> None:
    session.print_script(request, Screen())


def test_our_backends_have_their_registered_names() -> None:
    assert registry.names() == ["guest", "host", "simulator"]
    assert [registry.make(name).name for name in registry.names()] == registry.names()
    assert [name for name in registry.names() if registry.make(name).repeats_anywhere] == [
        "guest",
        "simulator",
    ]


def test_unknown_backend_lists_known_backends() -> None:
    sentence = (
        "--backend: there is no backend 'gast': did you mean 'guest'? (all: guest, host, simulator)"
    )
    with pytest.raises(UsageError, match=re.escape(sentence)):
        show(request_of("fig3a", backend="gast"))
    with pytest.raises(
        UsageError, match="'fig3a' is not for the simulator: use --backend guest or host"
    ):
        show(request_of("fig3a", backend="simulator"))


@pytest.mark.usefixtures("clouds")
def test_backend_of_an_extension_is_loaded() -> None:
    assert registry.make("cloud").parallel == 7
    registry.check(["guest", "cloud"], "here")
    with pytest.raises(
        UsageError, match="clouds adds the backend 'mist', which has the name 'fog': repair or"
    ):
        registry.make("mist")
    with pytest.raises(
        UsageError, match="adds the backend 'silent', which has no attribute repeats_anywhere"
    ):
        registry.make("silent")


@pytest.mark.parametrize(
    ("backends", "sentence"),
    [
        ('["gest", "host"]',
         "experiment 'mine': backends: there is no backend 'gest': did you mean 'guest'?"),
        ("[]", "experiment 'mine': backends: name one or more of guest, host, simulator"),
    ],
)  # fmt: skip
def test_experiment_with_unknown_backend_is_refused(
    backends: str, sentence: str, own: Write
) -> None:
    own("experiments/mine.toml", f"backends = {backends}\n{FIG3A}")
    with pytest.raises(UsageError, match=re.escape(sentence)):
        show(request_of("mine", backend="host"))
    with pytest.raises(UsageError, match=re.escape(sentence)):
        explain.explain("mine", "smoke", [], Screen())
