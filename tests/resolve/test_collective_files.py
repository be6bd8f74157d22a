"""Jobs in GOAL that experiments name: what the plan keeps of them, and what is refused."""

from __future__ import annotations

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model import hooks
from qjump_mn.model.plan import Plan
from qjump_mn.programs.collective.program import CollectivePlan
from qjump_mn.resolve import named_files, plan
from qjump_mn.results import user_files
from tests.support.user_files import Write

JOB = "num_ranks 2\nrank 0 {\nl1: send 1500b to 1\n}\nrank 1 {\nl1: recv 1500b from 0\n}\n"
EXPERIMENT = """
title = "t"
reproduces = "r"
question = "q"
topology = "fanin"
backends = ["simulator"]
duration = "2ms"
replicates = 1
link = {}
claims = {}
workloads.job = { program = "collective", label = "job", level = 0, hosts = ["h1", "h2"], SETTINGS }
arms.one = { label = "one", workloads = ["job"], scheme = "none" }
figure = { plot = "latency_cdf", workload = "job", arms = ["one"] }
presets.smoke = { about = "" }
"""


def resolved(own: Write, settings: str = 'pattern = "goal", goal = "mine"') -> Plan:
    own("experiments/other.toml", EXPERIMENT.replace("SETTINGS", settings))
    return plan("other", "smoke", [])


def test_plan_has_the_text_and_its_hash_changes_with_it(own: Write) -> None:
    own("experiments/mine.goal", JOB)
    first = resolved(own)
    own("experiments/mine.goal", JOB + "\n")
    assert first.hash != resolved(own).hash
    (job,) = first.arms[0].workloads
    assert isinstance(job, CollectivePlan)
    assert job.goal == JOB
    assert job.describe() == "operations of a file in GOAL of h1, h2, again and again"
    assert {"p50_ms", "iterations"} <= hooks.measures(job).keys()
    assert not {"bus_gbps", "of_ideal"} & hooks.measures(job).keys()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ('pattern = "goal", goal = "none"', r"there is no file none\.goal: put it into "),
        ('pattern = "goal", goal = "../mine"', r"'\.\./mine' is not "),
        ('pattern = "goal"', "pattern 'goal' needs the name of a file, and no size"),
        ('pattern = "goal", goal = "mine", size = "1MB"', "pattern 'goal' needs the name of a"),
        ('pattern = "ring", size = "1MB", goal = "mine"', "pattern 'goal' needs the name of a"),
    ],
)
def test_other_files_are_refused(settings: str, sentence: str, own: Write) -> None:
    own("experiments/mine.goal", JOB)
    with pytest.raises(UsageError, match=rf"workloads\.job\.goal: {sentence}"):
        resolved(own, settings)


def test_a_long_file_is_refused(own: Write) -> None:
    own("experiments/mine.goal", " " * (named_files.MAX_TEXT + 1))
    with pytest.raises(UsageError, match=r"mine\.goal has 4194305 characters: 4194304 at most"):
        resolved(own)


def test_a_run_keeps_the_job_beside_the_experiment_that_names_it(own: Write) -> None:
    own("experiments/mine.goal", JOB)
    own("experiments/unused.goal", JOB)
    own("experiments/mine.txt", "a file of another kind")
    kept = [name for name, _ in user_files.files_of(resolved(own))]
    assert kept == ["experiments/other.toml", "experiments/mine.goal"]
