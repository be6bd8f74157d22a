"""Runs in the guest: gives networks the links, schemes and limiters of one arm after another. test_arms.py judges what that leaves."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import msgspec
from qjump_mn.network import openvswitch
from qjump_mn.network.testbed import Testbed

from qjump_mn.backends import trial
from qjump_mn.errors import QJumpError
from qjump_mn.model.plan import ArmPlan

arms = {name: msgspec.convert(arm, ArmPlan) for name, arm in json.loads(Path(__file__).with_name("arms.json").read_text()).items()}
said: dict[str, str] = {}
openvswitch.load_and_start()
folder = Path("asbuilt")
for _, alike in itertools.groupby(arms.items(), lambda item: item[1].network.skeleton()):
    waiting = list(alike)
    while waiting:
        with Testbed(waiting[0][1].network) as testbed:
            while waiting:
                name, arm = waiting.pop(0)
                try:
                    trial.treat(testbed, arm, folder)
                except QJumpError as error:
                    said[name] = str(error)
                    break  # this network is half of one arm: the next gets another
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
                said[name] = ""
Path("said.json").write_text(json.dumps(said))
