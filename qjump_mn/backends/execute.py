"""Run trials on a backend, and record them in a run directory; a lost trial stops no other."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from qjump_mn.backends.protocol import Backend, Ended
from qjump_mn.errors import InvalidRunError
from qjump_mn.model.plan import Trial
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import TrialRecord

TICK_S = 0.5

Reporter = Callable[[Trial, str], None]
"""Called with a trial and a line about its progress; from several threads."""


def execute(
    backend: Backend,
    trials: Iterable[Trial],
    run: RunDirectory,
    began: Reporter,
    ended: Callable[[Trial, Ended], None],
    tick: Callable[[], None] = lambda: None,
    spare: Callable[[], None] = lambda: None,
) -> None:
    """Run the ``trials``, ``backend.parallel`` at a time, the longest first.

    ``began`` reports a trial's start and progress, from other threads; the rest is called from this
    thread. ``ended`` reports a trial's end, ``tick`` is called every half second, and so is
    ``spare`` while fewer trials are left than may run at a time. An exception raised here, or an
    interrupt, ends the running trials, and no further trial starts.
    """

    def run_trial(trial: Trial) -> Ended:
        began(trial, "starts")
        return backend.run(trial, run.prepare(trial.name), lambda line: began(trial, line))

    pending: dict[Future[Ended], Trial] = {}
    with ThreadPoolExecutor(backend.parallel, thread_name_prefix="trial") as pool:
        try:
            for trial in sorted(trials, key=backend.cost, reverse=True):
                pending[pool.submit(run_trial, trial)] = trial
            while pending:
                tick()
                if len(pending) < backend.parallel:
                    spare()
                for future in wait(pending, TICK_S, return_when=FIRST_COMPLETED).done:
                    trial, result = pending.pop(future), future.result()
                    _finish(run, trial, result)
                    ended(trial, result)
        except BaseException:
            backend.stop()
            pool.shutdown(cancel_futures=True)
            raise
    run.close(datetime.datetime.now(datetime.UTC))


def _finish(run: RunDirectory, trial: Trial, result: Ended) -> None:
    """Record a trial's end in the run directory and its log."""
    run.finish(trial.name, _record(result))
    times = {"wall_s": round(result.wall_s, 2), "waited_s": round(result.waited_s, 2)}
    run.log("trial", name=trial.name, exit_code=result.exit_code, message=result.message, **times)


def _record(result: Ended) -> TrialRecord:
    status = {0: "done", InvalidRunError.exit_code: "invalid"}.get(result.exit_code, "lost")
    return TrialRecord(
        status=status,  # type: ignore[arg-type]
        exit_code=result.exit_code,
        message=result.message,
        virtual_s=result.virtual_s,
        wall_s=round(result.wall_s, 3),
        cpu_s=result.cpu_s if result.cpu_s is None else round(result.cpu_s, 2),
        memory_mb=result.memory_mb,
    )
