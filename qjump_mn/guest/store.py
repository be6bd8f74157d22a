"""Results of guests, kept for the project's own tests (remembered.py): what goes into a guest decides what it
leaves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import msgspec

from qjump_mn import cache, remembered
from qjump_mn.guest.job import Image, Job, Result, Setup, encode_job, encode_setup
from qjump_mn.remembered import Kind

_SOURCES = ("__init__", "instance", "job", "result", "starter", "store")
"""The modules of this package on which a result depends. What runs in the guest is in the image's hashes."""

_P = ParamSpec("_P")


def _compared(result: Result) -> list[str]:
    """Exit code, virtual time and hashes; the console is a file."""
    return [str(result.exit_code), str(result.virtual_s), str(sorted(result.sha256.items()))]


GUEST = Kind("guest", Result, _compared)


def kept(run: Callable[_P, Result]) -> Callable[_P, Result]:
    """`run` of this package, which looks into the session's store before it starts a guest."""

    @functools.wraps(run)
    def stored(*args: _P.args, **kwargs: _P.kwargs) -> Result:
        session = remembered.session()
        if session is None:
            return run(*args, **kwargs)
        call = inspect.signature(run).bind(*args, **kwargs)
        call.apply_defaults()
        out: Path = call.arguments["out"]

        def afresh(folder: Path) -> Result:
            call.arguments["out"] = folder
            return run(*call.args, **call.kwargs)

        result = remembered.once(session, GUEST, _key(call.arguments), afresh, out)
        return msgspec.structs.replace(result, console=out / "console.log")

    return stored


def _key(arguments: dict[str, object]) -> str:
    """The hash of everything that a result depends on: `arguments` are those of `run`, by name."""
    image, setup, job = (arguments[name] for name in ("image", "setup", "job"))
    assert isinstance(image, Image) and isinstance(setup, Setup) and isinstance(job, Job)
    memory = str(arguments["memory_mb"])
    return cache.hash_of(*described(image), encode_setup(setup), encode_job(job), memory, *code())


def described(image: Image) -> list[str]:
    """All that an image decides of a result."""
    return [f"{name} {value}" for name, value in sorted(image.sha256.items())]


def code() -> list[str]:
    """The hashes of the modules that start a guest and read what it leaves."""
    return [cache.hash_of_code(Path(__file__).with_name(f"{name}.py")) for name in _SOURCES]
