"""Files that are broken, and words that are not known: each sentence names the place and the choices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import qjump_mn
from qjump_mn.errors import UsageError
from qjump_mn.model import choices, loading, places, resolve

CHECKOUT = Path(qjump_mn.__file__).parents[1]
FIG3A = CHECKOUT.joinpath("experiments/fig3a.toml").read_text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of experiments and schemes."""
    for kind in ("experiments", "schemes"):
        (tmp_path / kind).mkdir()
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    return tmp_path


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "400", "PYTHONPATH": str(CHECKOUT)}
    argv = [sys.executable, "-P", "-c", "from qjump_mn.run import main; main()", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)


def test_a_broken_file_leaves_the_list_of_the_others(folder: Path) -> None:
    (folder / "experiments/torn.toml").write_text('title = "a')
    (folder / "experiments/odd.toml").write_text("presets = 3")
    (folder / "schemes/bad.toml").write_text('label = "bad"')
    done = command("list")
    assert (done.returncode, done.stderr) == (0, "")
    rows = {line.split()[0].rstrip(","): line for line in done.stdout.splitlines() if line}
    assert {*loading.names("experiments"), *loading.names("schemes")} <= rows.keys()
    assert f"broken: {folder}/experiments/torn.toml is not valid TOML: " in rows["torn"]
    assert "broken: experiment 'odd': presets: Expected `object`, got `int`" in rows["odd"]
    assert "broken: scheme 'bad': required and missing: about, look" in rows["bad"]
    assert "Figure 3a" in rows["fig3a"]


def test_a_second_name_is_found_beside_a_broken_file(folder: Path) -> None:
    (folder / "experiments/a.toml").write_text('title = "a')
    name, second = next(
        (name, loading.also(name)[0]) for name in loading.names("experiments") if loading.also(name)
    )
    assert loading.experiment_called(second) == name
    assert loading.experiment_called("nothing") == "nothing"


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            'predicate = "qjump.ping.loss',
            'predicate = "qjump.pign.loss',
            "character 1: 'qjump.pign.loss' names no workload",
        ),
        (
            'plot = "latency_cdf"',
            'plot = "latency"',
            "there is no figure 'latency': did you mean 'latency_cdf'?",
        ),
        (
            'title = "',
            'backends = ["guest", "vm"]\ntitle = "',
            "experiment 'mine': backends: there is no backend 'vm': known are guest, host, simulator",
        ),
    ],
)
def test_a_dry_run_refuses_what_a_run_refuses(before: str, after: str, sentence: str, folder: Path) -> None:
    assert before in FIG3A
    (folder / "experiments/mine.toml").write_text(FIG3A.replace(before, after))
    done = command("run", "mine", "--preset", "smoke", "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


PROGRAMS = (
    "barrier, command, fanin, flows, iperf, mapreduce, memcached, memcaslap, noise, ping, ptp, q2pc, shuffle, "
    "tap"
)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            "workloads.ping.program=xyz",
            f"experiment 'fig3a': workloads.ping.program: there is no program 'xyz': known are {PROGRAMS}",
        ),
        ("workloads.ping.program=netperf", f"there is no program 'netperf': known are {PROGRAMS}"),
        ("link.model=zzz", "link.model: there is no link model 'zzz': known are wire, htb, tbf"),
        (
            "schemes.none.look.dashes=wavy",
            "schemes.none.look.dashes: 'wavy' is not possible: known are dashdot, dashed",
        ),
    ],
)
def test_a_wrong_word_is_told_with_the_choices(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refusal:
        resolve.plan("fig3a", "smoke", [setting])
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            'program = "ping"',
            'program = "netperf"',
            "workloads.ping.program: there is no program 'netperf': known are barrier, ",
        ),
        (
            'program = "ping"\n',
            "",
            "workloads.ping: Object missing required field `program`: known are barrier, command, ",
        ),
        (
            'program = "ping"\n',
            'program = "ping"\nintervall = "1ms"\n',
            "unknown field `intervall`: did you mean 'interval'?",
        ),
        (
            "[arms.idle]\n",
            "[arms.idle]\nzzz = 1\n",
            "arms.idle: Object contains unknown field `zzz`: known are label, workloads",
        ),
        (
            "[figure]\n",
            "[figure]\npanels = [{ zzz = 1 }]\n",
            "figure.panels[0]: Object contains unknown field `zzz`: known are ",
        ),
    ],
)
def test_a_wrong_word_of_a_file_is_told_with_the_choices(
    before: str, after: str, sentence: str, folder: Path
) -> None:
    assert before in FIG3A
    (folder / "experiments/mine.toml").write_text(FIG3A.replace(before, after, 1))
    with pytest.raises(UsageError) as refusal:
        resolve.plan("mine", "smoke", [])
    assert sentence in str(refusal.value)


def test_all_that_is_missing_is_told_at_once(folder: Path) -> None:
    (folder / "experiments/mine.toml").write_text(
        '[workloads.ping]\nprogram = "ping"\n[workloads.bulk]\nprogram = "noise"\n[claims.one]\nsource = "x"\n'
    )
    with pytest.raises(UsageError) as refusal:
        resolve.plan("mine", "course", [])
    missing = (
        "workloads.ping.flows, workloads.bulk.flows, workloads.bulk.interval, workloads.bulk.burst, arms"
    )
    assert str(refusal.value).startswith("experiment 'mine': required and missing: ")
    assert set(missing.split(", ")) < set(
        str(refusal.value).partition("missing: ")[2].partition(" (")[0].split(", ")
    )


def test_what_is_wrong_is_told_with_its_line(folder: Path) -> None:
    file = folder / "experiments/mine.toml"
    file.write_text(
        'title = "mine"\n\n[workloads.ping]\nprogram = "ping"\nflows = ["h8>h10"]\nintervall = "1ms"\n'
    )
    with pytest.raises(
        UsageError, match=rf"did you mean 'interval'\? \(all: interval, .*\) \({file}, line 6\)$"
    ):
        resolve.plan("mine", "course", [])
    file.write_text(
        '[workloads.ping]\nprogram = "ping"\nflows = "h8>h10"\n[arms.idle]\nworkloads = ["ping"]\n'
    )
    with pytest.raises(UsageError, match=rf"workloads\.ping\.flows: .* \({file}, line 3\)$"):
        resolve.plan("mine", "course", [])


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("title", 1),
        ("link.rate", 2),
        ("workloads.ping.interval", 7),
        ("workloads.ping", 4),
        ("workloads.ping.flows", 4),
        ("a.b[0].x", 9),
        ("nosuch", None),
        ("", None),
    ],
)
def test_lines_are_found(place: str, number: int | None) -> None:
    text = 'title = "x"\nlink.rate = "3"\n\n[workloads.ping]\nprogram = "ping"\n# c\ninterval = "1"\n\n[[a.b]]\nx=1\n'
    assert places.line(text, place) == number


def test_an_experiment_without_presets_has_the_usual_one(folder: Path) -> None:
    (folder / "experiments/mine.toml").write_text(FIG3A.partition("[presets.")[0])
    with pytest.raises(UsageError, match=r"experiment 'mine' has no preset 'smoke': known are course"):
        resolve.plan("mine", "smoke", [])


def test_of_many_words_the_likest_are_named() -> None:
    assert choices.nearest("x", []) == "there are none"
    assert choices.nearest("zzz", ["a", "b"]) == "known are a, b"
    assert choices.nearest("smok", ["paper", "smoke"]) == "did you mean 'smoke'? (all: smoke, paper)"
    assert choices.nearest("smok", ["smoke"]) == "did you mean 'smoke'?"
    near = choices.nearest("word7", [f"word{number}" for number in range(30)])
    assert near == "did you mean 'word7'? (nearest: word7, word17, word27, word0, word1, word2)"
    many = choices.nearest("q", [f"word{number}" for number in range(30)])
    assert many.startswith("known are word") and many.endswith(" and 6 others")
