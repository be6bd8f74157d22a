"""Runs in the guest: gives networks the links, schemes and limiters of one arm after another, and
takes them back. test_arms.py judges what that leaves."""

from __future__ import annotations

import json
from pathlib import Path

from executor import steps, trial
from executor.errors import QJumpError

work = json.loads(Path(__file__).with_name("work.json").read_text())
trial.Network().build(steps.decode(work["openvswitch"]), Path("/tmp"))
sentences: dict[str, str] = {}
for todo in work["networks"]:
    with trial.Network() as network:
        network.build(steps.decode(todo["up"]), Path("/tmp"))
        for name, treatment in todo["arms"].items():
            Path("/dev/console").write_text(f"{trial.PROGRESS}{name}\n")
            try:
                network.trial(steps.decode(treatment), Path(name), lambda line: None)
                sentences[name] = ""
            except QJumpError as error:
                sentences[name] = str(error)
Path("sentences.json").write_text(json.dumps(sentences))
