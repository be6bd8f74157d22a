"""`vagrant up` for real, with the project's own Vagrantfile: see bench/vagrant.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vagrant import trial

pytestmark = [pytest.mark.root, pytest.mark.nightly, pytest.mark.timeout(9000)]
ONE_TRIAL = "the results are those of the reference run in the 1 trial that both have"


def test_its_machine_has_the_reference_results(machine: Path) -> None:
    steps = trial.tried(machine, None, print)
    assert [(step.command, step.status) for step in steps] == [
        (command, 0) for command in trial.COMMANDS
    ]
    said = {step.command: " ".join(" ".join(step.lines).split()) for step in steps}
    for command in trial.COMMANDS[1:3]:
        assert ONE_TRIAL in said[command], said[command]
