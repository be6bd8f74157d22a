"""Build the guest's image and the simulator in parallel, the first time on a machine."""

from __future__ import annotations

import threading
from collections.abc import Callable

from qjump_mn import guest, toolbox
from qjump_mn.process.heartbeat import heartbeat
from qjump_mn.toolbox import machines

BUILD_MINUTES = 6
"""The approximate duration on two cores, measured by bench/first_run.py."""


def build(progress: Callable[[str], None]) -> guest.Image:
    """Build the guest's image and the simulator, unless they exist; return the image.

    The simulator is compiled in a daemon thread, so that an interruption does not wait for it.
    Raises MachineError as `guest.prepare` and `machines.simulator_package` do.
    """
    with heartbeat(progress) as report:
        if machines.reference(report) is None:
            toolbox.toolbox(report)  # both need it
        failures: list[Exception] = []

        def compile_simulator() -> None:
            try:
                machines.simulator_package(report)
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=compile_simulator, name="simulator", daemon=True)
        thread.start()
        image = guest.prepare(report)
        thread.join()
        if failures:
            raise failures[0]
        return image
