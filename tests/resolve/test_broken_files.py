"""Files that are broken, and words that are not known: each sentence names the place and the
choices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qjump_mn import resolve
from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions
from qjump_mn.resolve import loading
from tests.support.processes import cli
from tests.support.user_files import FIG3A


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of experiments and schemes."""
    for kind in ("experiments", "schemes"):
        (tmp_path / kind).mkdir()
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    return tmp_path


def test_a_broken_file_leaves_the_list_of_the_others(folder: Path) -> None:
    (folder / "experiments/torn.toml").write_text('title = "a')
    (folder / "experiments/odd.toml").write_text("presets = 3")
    (folder / "schemes/bad.toml").write_text('label = "bad"')
    done = cli("list", COLUMNS="400")
    assert (done.returncode, done.stderr) == (0, "")
    rows = {line.split()[0].rstrip(","): line for line in done.stdout.splitlines() if line}
    assert {*loading.names("experiments"), *loading.names("schemes")} <= rows.keys()
    assert f"broken: {folder}/experiments/torn.toml is not valid TOML: " in rows["torn"]
    assert "broken: experiment 'odd': presets: must be a table (got a whole number)" in rows["odd"]
    assert "broken: scheme 'bad': required and missing: about, look" in rows["bad"]
    assert "Figure 3a" in rows["fig3a"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("schemes = 3", "schemes: must be a table (got a whole number)"),
        ("link = 3", "link: must be a table (got a whole number)"),
        ("[presets]\nsmoke = 3", "presets.smoke: must be a table (got a whole number)"),
        ("[presets.smoke]\nwithout = 3",
         "presets.smoke.without: must be a list (got a whole number)"),
        ("[presets.smoke]\nwithout = [3]",
         "presets.smoke.without[0]: must be a text (got a whole number)"),
        ("[schemes.x]\nbase = 3", "schemes.x.base: must be a text (got a whole number)"),
        (f"duration = {'1' * 5000}", "is not valid TOML: "),
        (f"duration = {'[' * 3000}", "is not valid TOML: "),
    ],
)  # fmt: skip
def test_what_is_of_another_kind_is_told(text: str, sentence: str, folder: Path) -> None:
    (folder / "experiments/odd.toml").write_text(text)
    for ask in (loading.summary, lambda name: loading.experiment(name, "smoke", [])):
        with pytest.raises(UsageError, match=re.escape(sentence)):
            ask("odd")


def test_a_file_may_begin_with_a_mark_of_the_byte_order(folder: Path) -> None:
    (folder / "experiments/marked.toml").write_bytes(b"\xef\xbb\xbf" + FIG3A.encode())
    assert loading.summary("marked").presets.keys() == loading.summary("fig3a").presets.keys()


def test_only_files_are_experiments(folder: Path) -> None:
    (folder / "experiments/dir.toml").mkdir()
    (folder / "experiments/loop.toml").symlink_to("loop.toml")
    assert not {"dir", "loop"} & set(loading.names("experiments"))


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
        ('predicate = "qjump.ping.loss', 'predicate = "qjump.pign.loss',
         "character 1: 'qjump.pign.loss' names no workload"),
        ('plot = "latency_cdf"', 'plot = "latency"',
         "there is no figure 'latency': did you mean 'latency_cdf'?"),
        ('title = "', 'backends = ["guest", "vm"]\ntitle = "',
         "experiment 'mine': backends: there is no backend 'vm': known are guest, host, "
         "simulator"),
    ],
)  # fmt: skip
def test_dry_run_refuses_as_a_run(before: str, after: str, sentence: str, folder: Path) -> None:
    assert before in FIG3A
    (folder / "experiments/mine.toml").write_text(FIG3A.replace(before, after))
    done = cli("run", "mine", "--preset", "smoke", "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


PROGRAMS = (
    "barrier, collective, command, fanin, flows, iperf, mapreduce, memcached, memcaslap, noise, ping, ptp, "
    "q2pc, shuffle, tap"
)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("workloads.ping.program=xyz",
         "experiment 'fig3a': workloads.ping.program: there is no program 'xyz': known are "
         f"{PROGRAMS}"),
        ("workloads.ping.program=netperf", f"there is no program 'netperf': known are {PROGRAMS}"),
        ("schemes.none.look.colour=purplish",
         "scheme 'none': look.colour: 'purplish' is not a colour: write it as in '#AA3377'"),
        ("schemes.none.look.marker=oo", "look.marker: 'oo' is not a marker: use one of o v ^"),
        ("qjump.course.factors.6=nan", "factors.6: nan is not a finite number"),
        ("qjump.limiter.factors.6=1e308", "factors.6: a factor of 1e+308 is out of range"),
        ("replicates=1000000", "replicates must be 1 to 1000 (got 1000000)"),
        ("compare=contendet", "compare: there is no arm 'contendet': did you mean 'contended'?"),
        ("workloads.bulk.udp_rate=0bit", "workloads.bulk.udp_rate: a rate of 0 sends nothing"),
        ("arms.idle.workloads=ping,ping",
         "arms.idle: workload 'ping' is named twice: name each once"),
        ('schemes.none.switch_port=["qdisc add dev {dev} parent {parent} pfifo limit {packets"]',
         "switch_port: 'qdisc add dev {dev} parent {parent} pfifo limit {packets' has a brace "
         "without"),
    ],
)  # fmt: skip
def test_a_wrong_word_is_told_with_the_choices(setting: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refusal:
        resolve.plan("fig3a", "smoke", [setting])
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('program = "ping"', 'program = "netperf"',
         "workloads.ping.program: there is no program 'netperf': known are barrier, "),
        ('program = "ping"\n', "",
         "workloads.ping: Object missing required field `program`: known are barrier, "),
        ('program = "ping"\n', 'program = "ping"\nintervall = "1ms"\n',
         "unknown field `intervall`: did you mean 'interval'?"),
        ("[arms.idle]\n", "[arms.idle]\nzzz = 1\n",
         "arms.idle: Object contains unknown field `zzz`: known are label, workloads"),
        ("[figure]\n", "[figure]\npanels = [{ zzz = 1 }]\n",
         "figure.panels[0]: Object contains unknown field `zzz`: known are "),
    ],
)  # fmt: skip
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
    missing = "workloads.ping.flows, workloads.bulk.flows, workloads.bulk.interval, workloads.bulk.burst, arms"
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
    ("text", "told"),
    [
        ('duration = "soon"', "duration: 'soon' is not a duration: "),
        ('workloads.ping.interval = "soon"', "workloads.ping.interval: 'soon' is not a duration: "),
        ('workloads.ping.intervall = "1ms"', "did you mean 'interval'"),
    ],
)
def test_error_in_a_preset_is_told_with_its_line(text: str, told: str, folder: Path) -> None:
    file = folder / "experiments/mine.toml"
    file.write_text(
        'duration = "1s"\n[workloads.ping]\nprogram = "ping"\nflows = ["h8>h10"]\ninterval = "1ms"\n'
        '[arms.idle]\nworkloads = ["ping"]\n'
        f'[presets.course]\n[presets.long]\nworkloads.ping.payload = "57B"\n{text}\n'
    )
    with pytest.raises(UsageError) as refusal:
        resolve.plan("mine", "long", [])
    assert told in str(refusal.value) and str(refusal.value).endswith(f"({file}, line 11)")


def test_an_experiment_without_presets_has_the_usual_one(folder: Path) -> None:
    (folder / "experiments/mine.toml").write_text(FIG3A.partition("[presets.")[0])
    with pytest.raises(
        UsageError, match=r"experiment 'mine' has no preset 'smoke': known are course"
    ):
        resolve.plan("mine", "smoke", [])


def test_of_many_words_the_likest_are_named() -> None:
    assert suggestions.nearest("x", []) == "there are none"
    assert suggestions.nearest("zzz", ["a", "b"]) == "known are a, b"
    assert (
        suggestions.nearest("smok", ["paper", "smoke"])
        == "did you mean 'smoke'? (all: smoke, paper)"
    )
    assert suggestions.nearest("smok", ["smoke"]) == "did you mean 'smoke'?"
    assert (
        suggestions.nearest("runn", ["run", *(str(number) for number in range(30))])
        == "did you mean 'run'?"
    )
    near = suggestions.nearest("word7", [f"word{number}" for number in range(30)])
    assert near == "did you mean 'word7'? (nearest: word7, word17, word27, word0, word1, word2)"
    assert (
        suggestions.nearest("q", [f"word{number}" for number in range(30)], "see the list")
        == "see the list"
    )
    many = suggestions.nearest("q", [f"word{number}" for number in range(30)])
    assert many.startswith("known are word") and many.endswith(" and 6 others")


MINE = """
workloads.ping = { program = "ping", flows = ["h1>h2"] }
workloads.bulk = { program = "iperf", flows = ["h3>h2"] }
arms.one = { workloads = ["ping", "bulk"], scheme = "none" }
"""


def mine(folder: Path, text: str) -> None:
    (folder / "experiments/mine.toml").write_text(text)


def test_a_file_without_the_usual_preset_is_run_with_its_first(folder: Path) -> None:
    mine(folder, f'{MINE}presets.smoke = {{ about = "short", duration = "1s" }}\n')
    assert loading.usual_preset("mine") == loading.usual_preset("mine", "guest") == "smoke"
    mine(folder, f'usual_preset = "smoek"\n{MINE}presets.smoke = {{ about = "short" }}\n')
    with pytest.raises(UsageError, match="has no preset 'smoek': did you mean 'smoke'"):
        resolve.plan("mine", loading.usual_preset("mine"), [])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"beside.x = 1\n{MINE}", "experiment 'mine': beside: "),
        (f"preset.smoke = 1\n{MINE}", "unknown field `preset`: did you mean 'presets'?"),
        (f'backends = ["simulator"]\n{MINE}',
         "its workloads need a duration, because they do not end by themselves: write duration "
         "= '10s'"),
        (f'sweeps.size = {{ label = "size", sets = [], values = ["32kB", "64kB"] }}\n{MINE}'
         'arms.two = { workloads = ["ping"], scheme = "none", sweep = "size" }',
         "sweeps.size: `sets` is empty: name a setting"),
        (f"{MINE}published.x = nan", "published.x: nan is not a finite number (.*mine.toml, line"),
    ],
)  # fmt: skip
def test_nonsense_is_told_before_anything_starts(folder: Path, text: str, sentence: str) -> None:
    mine(folder, text)
    done = cli("run", "mine", "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(sentence.replace("(.*", r"\(.*").replace("?", r"\?"), done.stderr), done.stderr


def test_settings_that_make_the_same_run_are_refused(folder: Path) -> None:
    """The sweep sets the buffer of each of its arms."""
    swept = MINE.replace('scheme = "none"', 'scheme = "none", sweep = "size"')
    mine(
        folder,
        f'backends = ["simulator"]\nduration = "1ms"\n{swept}'
        'sweeps.size = { label = "size", sets = ["link.buffer"], values = ["32kB", "64kB"] }\n',
    )
    done = cli("run", "mine", "-s", "link.buffer=32kB,64kB", "--out", str(folder / "runs"))
    assert done.returncode == 2
    assert (
        "-s link.buffer=32kB and -s link.buffer=64kB make the same run: an arm or a sweep of the "
        "experiment sets that itself" in done.stderr
    )
    assert not (folder / "runs").exists()


@pytest.mark.parametrize("setting", ["congestion_control=bbr", "ecn=true"])
def test_another_tcp_than_the_simulators_is_refused(setting: str, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    done = cli(
        "run", "fig3a", "--preset", "10g", "-s", f"schemes.none.{setting}", "--out", str(out)
    )
    name = setting.partition("=")[0]
    assert (
        f"the scheme sets {name}, but like = 'linux' is CUBIC without ECN: choose a law"
        in done.stderr
    )
    assert done.returncode == 2 and not out.exists()
