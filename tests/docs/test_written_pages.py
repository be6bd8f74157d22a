"""Pages of the documentation that are written from types and registries: current, whole, and true of runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench import calibrated, marks, measures, run_directory, schema, simulator_api
from qjump_mn import resolve
from qjump_mn.analysis import pipeline
from qjump_mn.api import Run, run
from qjump_mn.programs import registry
from qjump_mn.programs.base import LATENCIES
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.resolve import loading
from tests.support import synthetic


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("simulated")
    return run(
        "fig3a", preset="10g", settings={"duration": "1ms"}, arms=["idle", "contended"], out=out
    )


def test_the_page_of_measures_is_the_registry() -> None:
    text = "\n".join(measures.page()).strip("\n")
    assert marks.read(measures.PAGE, "measures") == text
    for name in registry.OURS:
        assert f"### `{name}`\n" in text


def test_similarity_page_has_what_was_calibrated() -> None:
    assert marks.read(calibrated.PAGE, "calibrated") == "\n".join(calibrated.table())


def test_every_constant_of_every_plan_is_explained() -> None:
    found = {
        name
        for experiment in loading.names("experiments")
        for preset in loading.presets(experiment)
        for name in resolve.plan(experiment, preset, []).judged.constants
    }
    assert [name for name in sorted(found) if measures.constant_entry(name) is None] == []
    assert {measures.constant_entry(name) for name in found} == set(measures.CONSTANTS)


def test_the_table_of_a_workload_has_the_columns_of_the_page(simulated: Run) -> None:
    table = simulated.table("ping").drop_columns(["arm", "seed"])
    columns = ", ".join(f"`{field.name}` ({field.type})" for field in table.schema)
    assert f"Table: {columns}.\n" in measures.PAGE.read_text()
    assert set(simulated.measures["idle"]["ping"]) == set(LATENCIES)


def test_the_page_of_the_run_directory_is_the_types() -> None:
    assert marks.read(run_directory.PAGE, "run_directory") == "\n".join(run_directory.page()).strip(
        "\n"
    )


def test_the_page_of_the_simulators_api_is_its_sources() -> None:
    text = "\n".join(simulator_api.page()).strip("\n")
    assert marks.read(simulator_api.PAGE, "simulator_api") == text
    told = re.findall(r"^- `(\w+)`: \S", text, re.MULTILINE)
    assert len(told) == len(set(told)) and set(told) >= simulator_api.exported() | {
        *"Ping MapReduce fan_in".split()
    }
    assert "\n- `Series`: Samples of a network, " in text
    whole = simulator_api.in_full(simulator_api.PAGE.read_text())
    assert (
        "\n- `queued: NDArray[np.int64]`: Bytes that each port had accepted and not sent" in whole
    )
    assert "### `run(scenario: Scenario, ports: bool=False, " in whole


def test_every_file_of_a_run_is_on_the_page(simulated: Run, tmp_path: Path) -> None:
    """Of a simulated run, and of one as the guest leaves it."""
    made = synthetic.make(tmp_path, only=["idle", "contended"])
    pipeline.analyse(made.path)
    seen = set()
    for root in (simulated.path, made.path):
        for path in sorted(root.rglob("*")):
            if path.is_file():
                entry = run_directory.entry(path.relative_to(root).as_posix())
                assert entry is not None, path
                seen.add(entry)
    # Neither is asked for a PDF or watched, and neither is of a user's own files: tests/cli/test_bundle.py has such a run.
    assert seen > set(run_directory.OF_RUN) - {"report.pdf", "player.html", "own/*"}
    assert run_directory.entry("own/experiments/mine.toml") == "own/*"


def test_every_key_of_a_trial_is_on_the_page(simulated: Run) -> None:
    """Manifest and verdicts are read strictly, so that they have no other."""
    facts = json.loads((simulated.path / "trials/idle/1/trial.json").read_text())
    assert set(facts) - set(TrialFacts.__struct_fields__) == {"trial"}
    assert "`trial`" in run_directory.PAGE.read_text().partition("<!--")[0]


def test_the_schemas_are_the_types() -> None:
    assert {path.stem for path in schema.FOLDER.iterdir()} == set(schema.FILES)
    for kind, made in schema.schemas().items():
        assert (schema.FOLDER / f"{kind}.json").read_text() == schema.text(made)
