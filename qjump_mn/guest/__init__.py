"""The guest: Linux with a clock of its own, in which an entry point runs. It knows nothing of networks or
experiments.

    image = prepare(print)
    setup = Setup(entry="package.module:bring_up", args={...})
    result = run(image, setup, Job(entry="package.module:measure", args={...}, seed=7), Path("out"))

Each job has an instance of its own: Linux as a program, whose time stands still while code runs
(instance.py), and on a host that is no x86-64 Linux a machine around that (outer.py). It boots, sets up, does
the job, hands its files out and powers off.
"""

from __future__ import annotations

import hashlib
import re
import time
from functools import partial
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import LostError
from qjump_mn.guest import instance, outer
from qjump_mn.guest.cores import core
from qjump_mn.guest.images import check_processor, prepare
from qjump_mn.guest.instance import MEMORY_MB, Stop
from qjump_mn.guest.job import Image, Job, Progress, Result, Setup, Told, encode_job, encode_setup
from qjump_mn.guest.result import unpack
from qjump_mn.process import temp_dirs

__all__ = ["Image", "Job", "Progress", "Result", "Setup", "Stop", "check_processor", "prepare", "run"]

_MARK, _TICK = "qjump-mn: ", "qjump-mn-clock: "  # the executor's and the agent's constants
_TICKS = re.compile(b"^%b.*\n" % _TICK.encode(), re.MULTILINE)
_OVERRAN = "overran its virtual deadline"


def run(
    image: Image,
    setup: Setup,
    job: Job,
    out: Path,
    *,
    wall_deadline_s: float = 1800.0,
    progress: Progress = lambda line: None,
    clock: Told | None = None,
    memory_mb: int = MEMORY_MB,
    stop: Stop | None = None,
    long: bool = False,
) -> Result:
    """Boot an instance, set up, and do the job. Its files are unpacked into ``out`` (made if absent), with
    the console's text as `console.log`.

    An exception in the job's entry is exit code 5 with its traceback on the console. May be called from
    several threads at once: each waits for a core of its own, and a ``long`` one lets others pass (cores.py).
    The deadline begins when the core is there. ``clock`` is called with the seconds that the job has taken on
    the guest's clock, each ``job.tick_s`` of them. Raises LostError, which says how long was waited, when
    there is no complete result: panic, out of memory, deadline, or ``stop`` ended it; the console is kept
    then too.
    """
    encoded, asked = (encode_setup(setup), encode_job(job)), time.monotonic()
    stop = stop or Stop()

    def said(line: str) -> None:
        if line.startswith(_MARK):
            progress(line.removeprefix(_MARK).strip())
        elif line.startswith(_TICK) and clock:
            clock(float(line.removeprefix(_TICK)))

    with cache.sentences(), core(progress, stop.event, long=long) as number, temp_dirs.folder() as folder:
        started = time.monotonic()
        out.mkdir(parents=True, exist_ok=True)
        log = Path(folder, "log")
        try:
            left = (partial(outer.run, image.outer) if image.outer else instance.run)(
                image.kernel,
                image.initrd,
                b"".join(encoded),
                Path(folder),
                memory_mb=memory_mb,
                wall_deadline_s=wall_deadline_s,
                line=said,
                core=number,
                stop=stop,
            )
            trailer = unpack(left.out, out)
            if trailer is None:
                raise _lost("the guest ended without a result", log)
        except LostError as error:
            error.waited_s = started - asked
            if not stop.event.is_set():
                cache.check(image.kernel, image.initrd)
            raise
        finally:
            if log.exists():
                (out / "console.log").write_bytes(_TICKS.sub(b"", log.read_bytes()))
        wall_s = time.monotonic() - started
    sha256 = {
        **image.sha256,
        "setup": hashlib.sha256(encoded[0]).hexdigest(),
        "job": hashlib.sha256(encoded[1]).hexdigest(),
        "result": trailer.sha256,
    }
    return Result(
        exit_code=trailer.exit_code,
        virtual_s=trailer.virtual_ns / 1e9,
        wall_s=wall_s,
        waited_s=started - asked,
        console=out / "console.log",
        sha256=sha256,
        used=left.used,
    )


def _lost(what: str, log: Path) -> LostError:
    """The error for a guest that powered off without a result, with the end of its console."""
    text = log.read_text(errors="replace")
    return instance.lost("the guest overran its deadline in virtual time" if _OVERRAN in text else what, text)
