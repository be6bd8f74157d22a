"""The first build on a machine: the guest's image, and beside it the simulator."""

from __future__ import annotations

import threading
from collections.abc import Callable

from qjump_mn import guest, toolbox
from qjump_mn.process.heartbeat import heartbeat
from qjump_mn.toolbox import machines

BUILD_MINUTES = 6
"""About how long it takes on two cores; bench/first_run.py measures it."""


def build(progress: Callable[[str], None]) -> guest.Image:
    """Build the guest's image, and the simulator, or what is missing; return the image.

    The simulator is compiled in a thread of its own, which ends with this process: an interruption need not
    wait for it. Raises MachineError as `guest.prepare` and `machines.simulator_package` do.
    """
    with heartbeat(progress) as say:
        if machines.reference(say) is None:
            toolbox.toolbox(say)  # both need it
        failures: list[Exception] = []

        def compile_simulator() -> None:
            try:
                machines.simulator_package(say)
            except Exception as error:
                failures.append(error)

        beside = threading.Thread(target=compile_simulator, name="simulator", daemon=True)
        beside.start()
        image = guest.prepare(say)
        beside.join()
        if failures:
            raise failures[0]
        return image
