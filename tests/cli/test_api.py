"""A run from Python: tables, figures, verdicts, and running one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qjump_mn
from qjump_mn import session
from qjump_mn.analysis import pipeline
from qjump_mn.api import Run, run
from qjump_mn.errors import UsageError
from qjump_mn.model.plan import Plan
from qjump_mn.session import Request
from tests.support import synthetic
from tests.support.processes import execute


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = synthetic.make(tmp_path_factory.mktemp("api"), replicates=2, only=["idle", "contended"])
    pipeline.analyse(made.path)
    return Run.load(made.path)


def test_all_requests_are_in_one_table(judged: Run) -> None:
    table = judged.table("ping")
    assert table.column_names[:2] == ["arm", "seed"] and "latency_us" in table.column_names
    counts = table.group_by(["arm", "seed"]).aggregate([([], "count_all")]).to_pylist()
    sent = {one["count_all"] for one in counts}
    assert {(one["arm"], one["seed"]) for one in counts} == {
        (arm, seed) for arm in ("idle", "contended") for seed in (1, 2)
    }
    assert len(sent) == 1 and sent.pop() > 50
    assert (
        judged.measures["idle"]["ping"]["p50_ms"] < judged.measures["contended"]["ping"]["p50_ms"]
    )


def test_a_workload_of_some_arms_has_those(judged: Run) -> None:
    assert set(judged.table("bulk")["arm"].to_pylist()) == {"contended"}
    with pytest.raises(UsageError, match="has no table 'pign': did you mean 'ping'"):
        judged.table("pign")


def test_a_data_frame_where_there_is_pandas(judged: Run) -> None:
    frame = judged.df("ping")
    assert len(frame) == judged.table("ping").num_rows
    assert hasattr(frame, "to_pylist") == (find_spec("pandas") is None)


def test_a_notebook_shows_figures_and_verdicts(judged: Run) -> None:
    (figure,) = judged.figures
    assert figure._repr_svg_().lstrip().startswith("<?xml") and "<svg" not in repr(figure)
    assert repr(judged) == f"Run(path={judged.path!r})"
    page = judged._repr_html_()
    assert judged.plan.shown.title in page and all(
        verdict in page for verdict in judged.verdicts.values()
    )
    assert set(judged.verdicts) == set(judged.plan.judged.claims)


def test_what_is_no_judged_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no run directory"):
        Run.load(tmp_path / "none")


def called(
    code: str, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """The code, run in a folder with these variables, by a Python that finds nothing there by
    itself."""
    argv = [sys.executable, "-P", "-c", code]
    return execute(argv, cwd=folder, env=environment)


def test_the_documentation_runs_as_printed(tmp_path: Path) -> None:
    """In a process of its own: in this one the command line was imported, which is qjump_mn.run as
    well."""
    checkout = Path(qjump_mn.__file__).parents[1]
    blocks = re.findall(
        r"```python\n(.*?)```", (checkout / "docs/python.md").read_text(), re.DOTALL
    )
    code = "\n".join(
        [
            *blocks,
            "assert len(requests) >= 6 and figure.svg",
            "assert 'INVALID' not in made.verdicts.values(), made.verdicts",
            "print('all of it')",
        ]
    )
    done = called(code, tmp_path, {**os.environ, "PYTHONPATH": str(checkout)})
    assert done.stdout.endswith("all of it\n"), done.stderr


def test_a_run_needs_no_variable_and_heeds_no_module_of_the_folder(tmp_path: Path) -> None:
    """The package is on sys.path alone, and the folder has modules with the names of those that it
    uses."""
    for name in ("csv", "numpy", "statistics"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this is the user's own')")
    code = f"""
import sys
sys.path.append({str(Path(qjump_mn.__file__).parents[1])!r})
from qjump_mn import run
print(len(run("fig3a", preset="10g", settings={{"duration": "2ms"}}, arms=["idle"]).df("ping")))
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = called(code, tmp_path, environment)
    assert int(done.stdout.splitlines()[-1]) > 1, done.stderr


class Asked(Exception):
    """What would have been run."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def checked_backend(plan: Plan, request: Request, _: object) -> None:
        raise Asked(plan, request)

    monkeypatch.setattr(session, "checked_backend", checked_backend)


def test_an_argument_given_as_a_setting_is_named() -> None:
    for key, value, use in (
        ("seed", 3, "seed=3"),
        ("arms", ["idle"], "arms=['idle']"),
        ("out", "x", "out='x'"),
    ):
        with pytest.raises(UsageError) as refusal:
            run("fig3a", preset="10g", settings={key: value})
        assert str(refusal.value) == f"settings: {key} is an argument, not a setting: use {use}"


@pytest.mark.usefixtures("asked")
def test_values_of_python_are_settings_as_toml_has_them() -> None:
    settings = {
        "tcp.tail_loss_probe": True,
        "duration": "20ms",
        "replicates": np.int64(2),
        "qjump.paper.factors.6": 2.5,
        "backends": ["simulator"],
    }
    with pytest.raises(Asked) as raised:
        run("fig3a", preset="10g", settings=settings, arms=["idle"], perturb=1)
    plan, request = raised.value.args
    assert request.settings == (
        *"tcp.tail_loss_probe=true duration=20ms replicates=2 qjump.paper.factors.6=2.5".split(),
        'backends=["simulator"]',
    )
    assert len(plan.run.perturbations) == 1 and plan.shown.backends == ("simulator",)


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("asked_for", "sentence"),
    [
        ({"seed": "x"}, "seed: 'x' is not a whole number: write seed=2"),
        ({"replicates": "2"}, "replicates: '2' is not a whole number: write replicates=2"),
        ({"perturb": True}, "perturb: True is not a whole number: write perturb=2"),
        ({"arms": "idle"}, "arms: 'idle' is a string, not a list: write arms=['idle']"),
        ({"settings": ["duration=2ms"]},
         "settings: ['duration=2ms'] is not a dict: write {'duration': '20ms'}"),
        ({"settings": {"duration": None}},
         "settings: 'duration' cannot be None: use a string, a number, "),
        ({"arms": [1]}, "arms: 1 is not a string"),
        ({"backend": 3}, "backend: 3 is not a string"),
        ({"out": None}, "out: None is not a path: write out='results'"),
    ],
)  # fmt: skip
def test_what_run_cannot_take_is_one_sentence(asked_for: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}"):
        run("fig3a", preset="10g", **asked_for)


def test_what_is_not_even_a_name_is_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"^experiment: None is not a string"):
        run(None)  # type: ignore[arg-type]  # as a notebook may
    with pytest.raises(UsageError, match=r"^path: None is not a path"):
        Run.load(None)  # type: ignore[arg-type]


def test_an_experiment_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the simulator, which takes a second; from a notebook, which has a backend of matplotlib of
    its own."""
    monkeypatch.setenv("MPLBACKEND", "module://a_package_of_the_notebook")
    made = run("fig3a", preset="10g", settings={"duration": "1ms"}, arms=["idle"], out=tmp_path)
    assert made.path.parent == tmp_path.resolve() and made.manifest.backend == "simulator"
    assert set(made.table("ping")["arm"].to_pylist()) == {"idle"}
    # pytest's sys.stdout, as contextlib.redirect_stdout and a notebook have one.
    printed = capsys.readouterr()
    assert "[1/1] idle/1: done in" in printed.out
    assert "median" in printed.out and printed.out.rstrip().endswith(f"run     {made.path}")
    words = " ".join(made.manifest.argv)
    assert words.startswith("qjump-mn run fig3a --preset 10g -s duration=1ms --arms idle --out ")
    with pytest.raises(UsageError, match="has no preset 'nosuch'"):
        run("fig3a", preset="nosuch", out=tmp_path)
