"""Run a job in a guest: Linux with a virtual clock. Knows nothing of networks or experiments.

    image = prepare(print)
    setup = Setup(entry="package.module:bring_up", args={...})
    result = run(image, setup, Job(entry="package.module:measure", args={...}, seed=7), Path("out"))

Each job has its own instance of Linux, which runs as an ordinary program and whose time stands
still while code runs (instance.py). It boots, runs the setup and the job, hands out the job's
files, and powers off. On a host that is not x86-64 Linux, QEMU emulates a machine around it
(outer.py).
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

from qjump_mn import cache
from qjump_mn.errors import LostError, MachineError
from qjump_mn.guest import instance, outer
from qjump_mn.guest.cores import core
from qjump_mn.guest.images import check_processor, prepare
from qjump_mn.guest.instance import MEMORY_MB, Outcome, Stop
from qjump_mn.guest.job import Image, Job, Progress, Result, Setup, Tick, encode_job, encode_setup
from qjump_mn.guest.result import Trailer, unpack
from qjump_mn.guest.terminal import Terminal
from qjump_mn.process import temp_dirs

__all__ = [
    "Image",
    "Job",
    "Progress",
    "Result",
    "Setup",
    "Stop",
    "Terminal",
    "check_processor",
    "prepare",
    "run",
]

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
    clock: Tick | None = None,
    memory_mb: int = MEMORY_MB,
    stop: Stop | None = None,
    long: bool = False,
    terminal: Terminal | None = None,
) -> Result:
    """Boot an instance, run the setup and the job, and unpack the job's files into ``out``.

    ``out`` is created if need be, and also gets the console's text as `console.log`. An exception
    in the job's entry point means exit code 5, with its traceback on the console. ``clock`` is
    called every ``job.tick_s`` with the job's seconds on the guest's clock.

    A job with a ``terminal`` is interactive: it does not wait for a core.

    May be called from several threads: each waits for a core, and a ``long`` job lets others pass
    (cores.py). The deadline counts from when the core is available. Raises LostError, with the time
    waited for the core, if there is no complete result: after a panic, out of memory, the deadline
    or ``stop``. The console is kept in these cases too.
    """
    encoded, arrived = (encode_setup(setup), encode_job(job)), time.monotonic()
    stop = stop or Stop()
    waits = core(progress, stop.event, long=long, interactive=terminal is not None)
    with cache.sentences(), waits as number, _serving(terminal) as descriptor:
        started = time.monotonic()
        boot = partial(
            _instance(image, descriptor),
            image.kernel,
            image.initrd,
            b"".join(encoded),
            memory_mb=memory_mb,
            wall_deadline_s=wall_deadline_s,
            line=_console_listener(progress, clock),
            core=number,
            stop=stop,
        )
        with _explained_loss(image, stop, started - arrived):
            outcome, trailer = _boot(boot, out)
        wall_s = time.monotonic() - started
    return Result(
        exit_code=trailer.exit_code,
        virtual_s=trailer.virtual_ns / 1e9,
        wall_s=wall_s,
        waited_s=started - arrived,
        console=out / "console.log",
        sha256=_hashes(image, *encoded, trailer),
        used=outcome.used,
    )


def _instance(image: Image, terminal: int | None) -> Callable[..., Outcome]:
    """Return what runs an instance on this host."""
    if image.outer is None:
        return partial(instance.run, terminal=terminal)
    if terminal is not None:
        raise MachineError(
            "a guest has a terminal on x86-64 Linux only; here it would run in an emulated machine"
        )
    return partial(outer.run, image.outer)


def _serving(terminal: Terminal | None) -> AbstractContextManager[int | None]:
    return terminal.serving() if terminal else nullcontext()


@contextmanager
def _explained_loss(image: Image, stop: Stop, waited_s: float) -> Iterator[None]:
    """Record the wait in a LostError, and blame a damaged image, unless the run was stopped."""
    try:
        yield
    except LostError as error:
        error.waited_s = waited_s
        if not stop.event.is_set():
            with suppress(OSError):  # a file outside the cache is missing: the loss says so
                cache.check(image.kernel, image.initrd)
        raise


def _boot(boot: Callable[[Path], Outcome], out: Path) -> tuple[Outcome, Trailer]:
    """Run an instance in a temporary folder, and unpack its result and its console into ``out``."""
    with temp_dirs.folder() as folder:
        log = Path(folder, "log")
        out.mkdir(parents=True, exist_ok=True)
        try:
            outcome = boot(Path(folder))
            if trailer := unpack(outcome.out, out):
                return outcome, trailer
            text = log.read_text(errors="replace")
            problem = (
                "overran its deadline in virtual time"
                if _OVERRAN in text
                else "ended without a result"
            )
            raise instance.lost(f"the guest {problem}", text)
        finally:
            if log.exists():
                (out / "console.log").write_bytes(_TICKS.sub(b"", log.read_bytes()))


def _console_listener(progress: Progress, clock: Tick | None) -> Progress:
    """Return a function that passes the console's lines on to ``progress`` and ``clock``."""

    def listen(line: str) -> None:
        if line.startswith(_MARK):
            progress(line.removeprefix(_MARK).strip())
        elif line.startswith(_TICK) and clock:
            clock(float(line.removeprefix(_TICK)))

    return listen


def _hashes(image: Image, setup: bytes, job: bytes, trailer: Trailer) -> dict[str, str]:
    return {
        **image.sha256,
        "setup": hashlib.sha256(setup).hexdigest(),
        "job": hashlib.sha256(job).hexdigest(),
        "result": trailer.sha256,
    }
