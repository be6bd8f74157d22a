"""Run trials on the workers of a Dask cluster: ``--engine dask --scheduler ADDRESS``.

This works for the simulator and the guest. Every worker needs this package, in this version. A
worker builds or finds its own image, and refuses trials if that differs from ours. It returns a
trial's files as bytes, so the run directory is the same as that of a local run. If a worker dies,
Dask gives its trials to another.
"""

from __future__ import annotations

import functools
import importlib
import threading
from pathlib import Path
from typing import Any, Self

import msgspec

from qjump_mn import __version__
from qjump_mn.backends import registry
from qjump_mn.backends.protocol import Backend, Ended, Progress
from qjump_mn.errors import LostError, MachineError, QJumpError
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.process import temp_dirs
from qjump_mn.programs import registry as programs

CONNECT_S = 10.0
"""How long a scheduler may take to answer."""


class RemoteBackend:
    """Runs the trials of ``inner`` on a cluster, one per thread that it has at the start."""

    repeats_anywhere = True

    def __init__(self, inner: Backend, scheduler: str) -> None:
        self.name, self.clock, self.parallel = inner.name, inner.clock, 1
        self._inner, self._scheduler = inner, scheduler
        self._client: Any = None
        self._futures: set[Any] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._client is not None:
            self._client.close()

    def check(self, plan: Plan, progress: Progress) -> None:
        """Check the plan as the inner backend does, and connect to the cluster.

        Raises :class:`MachineError` if Dask, the scheduler or workers are missing.
        """
        self._inner.check(plan, progress)
        try:
            distributed: Any = importlib.import_module("distributed")  # has no types
        except ImportError:
            raise MachineError(
                "Dask is not installed: install qjump-mn[sweep], or leave --engine out"
            ) from None
        try:
            self._client = distributed.Client(
                self._scheduler, timeout=CONNECT_S, set_as_default=False
            )
        except (OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise MachineError(
                f"no Dask scheduler answers at {self._scheduler}: {reason}"
            ) from None
        self.parallel = sum(self._client.nthreads().values())
        if not self.parallel:
            raise MachineError(
                f"the Dask scheduler at {self._scheduler} has no workers: start some with `dask "
                f"worker {self._scheduler}`"
            )

    def prepare(self, plan: Plan, progress: Progress) -> dict[str, str]:
        """Prepare the inner backend on this machine; each worker must have the same image."""
        facts = self._inner.prepare(plan, progress)
        self._run = functools.partial(
            run_here, self.name, msgspec.json.encode(plan), facts["image"], __version__
        )
        progress(f"using {self.parallel} threads of the Dask cluster at {self._scheduler}")
        return facts

    def cost(self, trial: Trial) -> float:
        """Return the inner backend's cost."""
        return self._inner.cost(trial)

    def run(self, trial: Trial, out: Path, progress: Progress) -> Ended:
        """Run one trial on any worker."""
        with self._lock:
            future = self._client.submit(
                self._run, msgspec.json.encode(trial), key=f"{out}", pure=False
            )
            self._futures.add(future)
        try:
            ended, files = future.result()
        except QJumpError as error:
            return Ended(error.exit_code, str(error), None, 0.0)
        except Exception as error:  # a killed worker, a lost scheduler: no common class
            reason = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
            sentence = f"the Dask cluster lost the trial: {reason}"
            return Ended(LostError.exit_code, sentence, None, 0.0)
        finally:
            with self._lock:
                self._futures.discard(future)
        for name, content in files.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return Ended(*ended)

    def stop(self) -> None:
        """Cancel all trials that have not ended."""
        if self._client is not None:
            with self._lock:
                self._client.cancel(list(self._futures), force=True)


def run_here(
    backend: str, plan: bytes, image: str, version: str, trial: bytes
) -> tuple[tuple[Any, ...], dict[str, bytes]]:
    """Run a trial on a worker, and return its outcome and its files by name.

    Raises :class:`MachineError` if the worker has another version or image.
    """
    if version != __version__:
        problem = f"a worker has qjump-mn {__version__}, not {version}"
        raise MachineError(f"{problem}: install the same version")
    ready, worker_image = _prepared(backend, plan)
    if worker_image != image:
        raise MachineError(
            f"a worker has image {worker_image[:12]}, not {image[:12]}: use the same checkout and "
            "architecture"
        )
    with temp_dirs.folder() as name:
        folder = Path(name)
        ended = ready.run(
            msgspec.json.decode(trial, type=Trial, dec_hook=programs.decode),
            folder,
            lambda line: None,
        )
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        return tuple(ended), {
            path.relative_to(folder).as_posix(): path.read_bytes() for path in paths
        }


_preparing = threading.Lock()


def _prepared(backend: str, plan: bytes) -> tuple[Backend, str]:
    with _preparing:  # so that the threads of a worker prepare a plan only once
        return _prepare(backend, plan)


@functools.lru_cache(maxsize=4)
def _prepare(backend: str, plan: bytes) -> tuple[Backend, str]:
    ready = registry.make(backend)
    decoded = msgspec.json.decode(plan, type=Plan, dec_hook=programs.decode)
    ready.check(decoded, lambda line: None)
    return ready, ready.prepare(decoded, lambda line: None)["image"]
