"""The door for words from outside: each kind of word, and hostile ones at every name of a file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from qjump_mn import resolve, session
from qjump_mn.backends import emulated
from qjump_mn.cli import listing
from qjump_mn.errors import UsageError
from qjump_mn.executor.steps import Cable, End, Read, Run, Switch, Topology
from qjump_mn.model import words
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import loading
from qjump_mn.steps import script
from tests.support.processes import execute
from tests.support.screen import Screen

EXPERIMENT = """title = {title}
topology = {topology}
duration = "1s"
question = {question}

[workloads.{workload}]
program = "command"
label = {workload_label}
role = "measure"
level = 1
flows = [{flow}]
command = [{command}]

[workloads.{workload}.numbers.{number}]
regex = "(1)"

[workloads.bulk]
program = "iperf"
label = "bulk"
level = 0
flows = ["h2>h3"]
congestion_control = {congestion_control}

[arms.{arm}]
label = {arm_label}
workloads = [{workload_named}, "bulk"]
scheme = {scheme}

[claims.{claim}]
statement = "One is one"
source = "a test"
predicate = {predicate}

[figure]
plot = "latency_cdf"
workload = {workload_named}
arms = [{arm_named}]

[presets.{preset}]
about = "a test"
"""
TOPOLOGY = """description = "a test"
mtu = "1500B"

[switches]
{switch} = [{below}, {host}, "h1"]
{below} = ["h2", "h3"]

[link]
model = "wire"
rate = "10Mbit"
buffer = "152.2kB"
delay = "0ns"
"""
SCHEME = """label = {label}
about = {about}
look = {{ colour = "#AA3377", marker = "o" }}
switch_port = [{tc}]

[parameters]
{parameter} = 1
"""
GOOD = {
    "title": "A title",
    "question": "Why?",
    "topology": "mine",
    "workload": "ask",
    "workload_label": "asks",
    "command": "true",
    "number": "one",
    "congestion_control": "bbr",
    "arm": "only",
    "arm_label": "the only one",
    "scheme": "mine",
    "claim": "is_one",
    "preset": "smoke",
    "switch": "s0",
    "below": "s1",
    "host": "h4",
    "label": "mine",
    "about": "a scheme",
    "tc": "qdisc add dev {dev} parent {parent} pfifo",
    "parameter": "share",
}
"""Every name and text of the three files."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder."""
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    return tmp_path


def quoted(word: str) -> str:
    """A TOML string."""
    plain = (
        one if one.isprintable() and one not in '"\\' else f"\\U{ord(one):08x}" for one in word
    )
    return f'"{"".join(plain)}"'


def write(folder: Path, **changed: str) -> None:
    """Write the three files, with other words in the place of some of the good ones."""
    slots = GOOD | changed
    slots |= {
        "flow": f"h1>{slots['host']}",
        "predicate": f"{slots['arm']}.{slots['workload']}.{slots['number']} == 1",
        "workload_named": slots["workload"],
        "arm_named": slots["arm"],
    }
    texts = {key: quoted(word) for key, word in slots.items()}
    for kind, template in (
        ("experiments", EXPERIMENT),
        ("topologies", TOPOLOGY),
        ("schemes", SCHEME),
    ):
        path = folder / kind / "mine.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(template.format(**texts))


def planned(preset: str = "smoke") -> Plan:
    """The plan, checked as a dry run does."""
    plan = resolve.plan("mine", preset, [], backend="host")
    session.check_plan(plan)
    emulated.check(plan)
    return plan


def readable(text: str) -> bool:
    """Whether a shell can parse it."""
    return (
        subprocess.run(
            ["sh", "-n"], input=text.encode(), capture_output=True, check=False
        ).returncode
        == 0
    )


TOUCH = "x;touch pwned;for name in y"


@pytest.mark.parametrize(
    ("key", "word", "sentence", "line"),
    [
        ("switch", TOUCH, "switches: .* has 27 bytes: a valid node name has at most 8", "topologies/mine.toml, line 5"),
        ("switch", "a;b", "switches: 'a;b' is not a valid node name: start with a letter", "line 5"),
        ("below", "ŝŝŝŝŝ", "'ŝŝŝŝŝ' has 10 bytes", "line 5"),
        ("host", "1", r"switches.s0\[1\]: '1' is not a valid node name", "topologies/mine.toml, line 5"),
        ("host", "switches", "'switches' is reserved: choose another name", "topologies/mine.toml"),
        ("switch", "lo", "'lo' is reserved", "topologies/mine.toml"),
        ("arm", "lambda", "arms: 'lambda' is reserved: choose another name", "experiments/mine.toml"),
        ("workload", "a-b", "workloads: 'a-b' is not a valid name: start with a letter or _", "experiments/mine.toml"),
        ("workload", "ﬁ", "workloads: 'ﬁ' is not a valid name", "experiments/mine.toml"),
        ("number", "is", "workloads.ask.numbers: 'is' is reserved", "experiments/mine.toml"),
        ("preset", "a/b", "presets: 'a/b' is not a valid name", "experiments/mine.toml"),
        ("arm_label", "a\nb", r"arms.only.label: 'a\\nb' is not one line of text", "experiments/mine.toml, line 25"),
        ("title", "\x1b[2J", r"title: '\\x1b\[2J' is not one line of text: leave out", "experiments/mine.toml, line 1"),
        ("question", "a\u202eb", r"question: 'a\\u202eb' is not text", "experiments/mine.toml, line 4"),
        ("command", "a\0b", r"command\[0\]: 'a\\x00b' is not text", "experiments/mine.toml, line 12"),
        ("parameter", "or", "parameters: 'or' is reserved", "schemes/mine.toml"),
        ("tc", "qdisc add dev {dev}\nEND\nid", r"switch_port\[0\]: .* is not one line of text", "schemes/mine.toml, line 4"),
        ("congestion_control", "bbr; id", "workloads.bulk.congestion_control: 'bbr; id' is not a kernel's", "line 22"),
    ],
)  # fmt: skip
def test_a_wrong_word_is_refused_with_file_and_line(
    key: str, word: str, sentence: str, line: str, folder: Path
) -> None:
    write(folder, **{key: word})
    with pytest.raises(UsageError, match=sentence) as caught:
        planned(GOOD["preset"])
    assert line in str(caught.value)
    assert caught.value.exit_code == 2
    assert str(caught.value).isprintable()


def test_a_long_interface_name_is_refused_for_the_emulation(folder: Path) -> None:
    write(folder, host="abcdefgh")
    path = folder / "topologies/mine.toml"
    path.write_text(path.read_text().replace("mtu =", "vlan = 4094\nmtu ="))
    with pytest.raises(
        UsageError, match=r"'abcdefgh-eth0\.4094' has 18 bytes: an interface's name has at most"
    ):
        planned()
    write(folder, switch="abcdefgh", tc="")
    more = "".join(f'"h{number}", ' for number in range(10, 19))
    path.write_text(path.read_text().replace('"wire"', '"tbf"').replace('"h1"]', f'{more}"h1"]'))
    scheme = folder / "schemes/mine.toml"
    scheme.write_text(scheme.read_text().replace('switch_port = [""]', ""))
    with pytest.raises(UsageError, match="i-abcdefgh-eth10 is longer"):
        planned()


HOSTILE = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.text("abcxyz_-.+/ ;&|<>$`'\"\\\n\t\x00\x1b\x7f\x85\u2028\u202eéκ字", max_size=300),
    st.sampled_from(
        [TOUCH, "$(touch "
                "pwned)", "`touch pwned`", "'; touch pwned; '", "\nEND\ntouch pwned\n", "-rf", "..", "x",
         "and", "None", "lo", "switches", "all", "é" * 8, "a" * 8, "a" * 9, "a" * 81, "a" * 20_000]
    ),
)  # fmt: skip


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(sorted(GOOD)), HOSTILE)
@example("switch", TOUCH)
@example("arm_label", "a\rtouch pwned")
def test_a_hostile_word_is_refused_or_harmless(folder: Path, key: str, word: str) -> None:
    write(folder, **{key: word})
    preset = word if key == "preset" else GOOD["preset"]
    try:
        text = "\n".join(script.lines(planned(preset)))
    except UsageError as error:
        # Another name of a file may be a good one, which is not there.
        assert "mine" in str(error) or f"there is no {key} {word!r}" in str(error)
        assert str(error).isprintable(), str(error)
        return
    assert readable(text)


# What a script does, with programs that do nothing.

IP = '#!/bin/sh\n[ "$1 $2" = "netns exec" ] || exit 0\nshift 3\nexec "$@"\n'
QJAU = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
# A client goes on until it is ended.
IPERF = f'#!/bin/sh\n[ "$1" = -s ] || exec {shutil.which("sleep")} 60\n'
NOTHING = "awk ethtool grep modprobe ovs-appctl ovs-ofctl ovs-vsctl ping sleep sysctl tc"


def carried_out(text: str, folder: Path) -> list[str]:
    """The files that a script leaves, with programs that do nothing on its path."""
    programs, place = folder / "programs", folder / "place"
    for path in (programs, place):
        path.mkdir()
    for name in ("sh", "mkdir", "date", "touch", "true"):
        (programs / name).symlink_to(shutil.which(name) or "")
    contents = dict.fromkeys(NOTHING.split(), "#!/bin/sh\n") | {
        "ip": IP,
        "qjau": QJAU,
        "iperf3": IPERF,
    }
    for name, content in contents.items():
        (programs / name).write_text(content)
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": str(programs)}
    done = execute(["sh", "-c", text], cwd=place, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("arm_label", "$(touch pwned) `touch pwned`; touch pwned"),
        ("title", "'; touch pwned; '"),
        ("workload_label", "' || touch pwned"),
        ("command", "$(touch pwned)"),
        ("command", "'\nEND\ntouch pwned\n"),
        ("tc", "qdisc add dev {dev} parent {parent} pfifo; touch pwned"),
        ("tc", "qdisc add dev {dev} parent {parent} $(touch pwned) << 'END' || touch pwned"),
    ],
)
def test_a_printed_script_runs_no_word(key: str, word: str, folder: Path) -> None:
    changed = {key: word} if key != "command" else {}
    write(folder, **changed)
    if key == "command":
        path = folder / "experiments/mine.toml"
        path.write_text(path.read_text().replace('["true"]', f'["true", {quoted(word)}]'))
    text = "\n".join(script.lines(planned()))
    left = carried_out(text, folder)
    assert left and not [name for name in left if "pwned" in name]


def test_a_script_quotes_what_no_door_has_seen(folder: Path) -> None:
    # A run's manifest may be a stranger's.
    ends = (
        End(node="h;touch pwned", device="d", mac=""),
        End(node="$(touch pwned)", device="`touch pwned`", mac=""),
    )
    lines = script.Script()
    steps = (
        Topology(
            hosts=("h;touch pwned",),
            switches=(Switch(name="$(touch pwned)", dpid="1"),),
            cables=(Cable(ends=ends, line="link add $(touch pwned)"),),
        ),
        Run(argv=("tc", "-batch", "-"), stdin="a\nEND\ntouch pwned\nEND_\n", undo=Run(argv=("tc", "x << 'END'"), stdin="END\ntouch pwned\n")),
        Read(argv=("tc", "a\ntouch pwned"), output="out/a;touch pwned"),
    )  # fmt: skip
    text = "\n".join([*lines.lines(steps), *lines.undo()])
    assert carried_out(text, folder) == ["out/a;touch pwned"]


# Files that cannot be read.


def test_a_file_of_a_name_that_cannot_be_is_told(folder: Path) -> None:
    write(folder)
    (folder / "experiments/a\x1b[2Jb.toml").write_text("")
    assert "mine" in loading.names("experiments")
    assert loading.misnamed("experiments") == [
        r"'a\x1b[2Jb' is not a valid name: start with a letter, a digit or _, then use letters, digits and _ . + -"
    ]


def test_a_name_that_leads_out_of_its_folder_is_not_found(folder: Path) -> None:
    write(folder, topology="../mine", scheme="mine")
    (folder / "mine.toml").write_text((folder / "topologies/mine.toml").read_text())
    with pytest.raises(UsageError, match=r"topology: '\.\./mine' is not a valid name"):
        planned()


@pytest.mark.parametrize(
    "kind",
    [kind for kind in vars(words).values() if isinstance(kind, words.Kind)],
    ids=lambda kind: kind.noun,
)
def test_every_kind_counts_bytes_and_refuses_controls(kind: words.Kind) -> None:
    for one in "\x00\x1b\x7f\x85\r\u2028\u2029\u202e\udc80":
        assert kind.problem(f"a{one}b")
    end = {words.MODULE: ".c", words.LAW: ".wasm"}.get(kind, "")
    assert not kind.problem(f"a{end}")
    assert not kind.problem("a" * (kind.max_bytes - len(end)) + end)
    assert f"has {kind.max_bytes + 2} bytes" in kind.problem("a" * kind.max_bytes + "é")


def test_a_file_nested_too_deeply_is_named_and_the_others_listed(folder: Path) -> None:
    write(folder)
    (folder / "experiments/deep.toml").write_text(f"{'.'.join('a' * 3000)} = 1\n")
    (folder / "experiments/lists.toml").write_text(f"a = {'[' * 400}{']' * 400}\n")
    out = Screen(1000)
    listing.show(out)
    text = out.text
    assert re.search(
        r"^deep is broken: experiment 'deep': .*nested too deeply.*/deep\.toml, line 1\)$",
        text,
        re.M,
    )
    assert re.search(r"^lists is broken: .*nested too deeply", text, re.M)
    assert re.search("^mine ", text, re.M) and re.search("^fig3a ", text, re.M)
    with pytest.raises(UsageError, match=r"'deep': .* nested too deeply: use at most 30"):
        loading.summary("deep")


@pytest.mark.parametrize("value", ["[" * 5000, f"{{{'.'.join('a' * 3000)} = 1}}"])
def test_a_setting_nested_too_deeply_is_refused(value: str, folder: Path) -> None:
    write(folder)
    with pytest.raises(UsageError, match="experiment 'mine'"):
        resolve.plan("mine", "smoke", [f"replicates={value}"])


def test_an_unknown_congestion_control_is_a_remark_for_scheme_and_workload(folder: Path) -> None:
    write(folder, congestion_control="prague")
    scheme = folder / "schemes/mine.toml"
    scheme.write_text(f'congestion_control = "prague2"\n{scheme.read_text()}')
    unknown = [remark for remark in planned().shown.remarks if "congestion control" in remark]
    assert [remark.split(": Linux has")[0] for remark in unknown] == [
        "workloads.bulk",
        "scheme 'mine'",
    ]
    assert "'prague': use a kernel that provides it" in unknown[0]
    write(folder)
    assert not [remark for remark in planned().shown.remarks if "congestion control" in remark]


def test_values_of_a_sweep_that_make_one_name_are_refused(folder: Path) -> None:
    write(folder)
    path = folder / "experiments/mine.toml"
    text = path.read_text().replace(
        "[claims",
        '[sweeps.way]\nlabel = "way"\n[sweeps.way.points."a b"]\n[sweeps.way.points.a_b]\n\n[claims',
    )
    text = text.replace("scheme = ", 'sweep = "way"\nscheme = ')
    path.write_text(re.sub(r"\[claims.*?\n\n", "", text, flags=re.S))
    with pytest.raises(UsageError, match="arms: two have the name 'only_a_b': rename one of them"):
        planned()
