"""Trials on a backend, into a run directory; one that is lost does not lose the others."""

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
"""Called with a trial and what it does now; from several threads."""


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

    ``ended`` is called from this thread, ``tick`` every second or so, and ``spare`` as often, when fewer
    trials are left than may run at a time. Whatever is raised here, an interrupt too, ends the trials that
    run, and none starts any more."""

    def one(trial: Trial) -> Ended:
        began(trial, "starts")
        return backend.run(trial, run.prepare(trial.name), lambda line: began(trial, line))

    waiting: dict[Future[Ended], Trial] = {}
    with ThreadPoolExecutor(backend.parallel, thread_name_prefix="trial") as pool:
        try:
            for trial in sorted(trials, key=backend.cost, reverse=True):
                waiting[pool.submit(one, trial)] = trial
            while waiting:
                tick()
                if len(waiting) < backend.parallel:
                    spare()
                for future in wait(waiting, TICK_S, return_when=FIRST_COMPLETED).done:
                    trial = waiting.pop(future)
                    how = future.result()
                    run.finish(trial.name, _record(how))
                    times = {"wall_s": round(how.wall_s, 2), "waited_s": round(how.waited_s, 2)}
                    run.log("trial", name=trial.name, exit_code=how.exit_code, message=how.message, **times)
                    ended(trial, how)
        except BaseException:
            backend.stop()
            pool.shutdown(cancel_futures=True)
            raise
    run.close(datetime.datetime.now(datetime.UTC))


def _record(how: Ended) -> TrialRecord:
    status = {0: "done", InvalidRunError.exit_code: "invalid"}.get(how.exit_code, "lost")
    return TrialRecord(
        status=status,  # type: ignore[arg-type]
        exit_code=how.exit_code,
        message=how.message,
        virtual_s=how.virtual_s,
        wall_s=round(how.wall_s, 3),
        cpu_s=how.cpu_s if how.cpu_s is None else round(how.cpu_s, 2),
        memory_mb=how.memory_mb,
    )
