"""Every class of the package has an example in its docstring, and the examples run."""

from __future__ import annotations

import doctest
import inspect
from dataclasses import replace

import numpy as np
import pytest

import qjump_sim
from qjump_sim import apps
from qjump_sim.arrays import ReadOnly

PUBLIC = {name: getattr(qjump_sim, name) for name in qjump_sim.__all__} | {name: thing for name, thing in vars(apps).items() if not name.startswith("_")}
CLASSES = {name: thing for name, thing in PUBLIC.items() if inspect.isclass(thing) and thing.__module__.startswith("qjump_sim.") and thing is not ReadOnly}
NAMES = {**PUBLIC, "replace": replace, "np": np}


def examples(thing: object) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(inspect.getdoc(thing) or "", dict(NAMES), getattr(thing, "__name__", ""), None, None)


@pytest.fixture(scope="module", autouse=True)
def outcome() -> None:
    """`outcome` is that of the example of `run`, as the page says."""
    names: dict[str, object] = dict(NAMES)
    for example in examples(qjump_sim.run).examples:
        exec(example.source, names)
    NAMES["outcome"] = names["outcome"]


@pytest.mark.parametrize("name", [*CLASSES, "run", "fan_in"])
def test_an_example_runs(name: str) -> None:
    test = examples(PUBLIC[name])
    assert test.examples, f"{name} has no example"
    said: list[str] = []
    doctest.DocTestRunner().run(test, out=said.append)
    assert not said, "".join(said)
