"""Any command line as a workload: what is refused, how it is started, and which numbers are taken
from real output."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from qjump_mn import resolve
from qjump_mn.analysis import claims, measures
from qjump_mn.backends import emulated
from qjump_mn.errors import LostError, UsageError
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.programs import registry
from qjump_mn.programs.command import numbers
from qjump_mn.programs.command.measures import requests
from qjump_mn.programs.command.program import CommandPlan, launches
from qjump_mn.programs.facts import TrialFacts
from qjump_mn.programs.launch import Launch
from qjump_mn.results import tables

CHECKOUT = Path(__file__).parents[2]
GOLDEN = CHECKOUT / "qjump_mn/programs/command/golden"
"""What a run of the example left of its arm 'contended'."""
PING = (GOLDEN / "client-h8-h11.command.txt").read_text()
IPERF = (GOLDEN / "copy-h9-h11.command.txt").read_text()
FACTS = TrialFacts(cpu_busy=0.1, window_s=(2.0, 12.0), began_ns=0, began_utc_ns=0)

EXAMPLE = (CHECKOUT / "examples/experiments/command.toml").read_text()
CLIENT = 'command = "ping -n -i 0.1 -c 100 {address}"'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "experiments").mkdir()
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    return tmp_path


def plan_of(folder: Path, old: str = "", new: str = "") -> Plan:
    """The example's plan, with one of its texts changed."""
    assert not old or EXAMPLE.count(old) == 1, old
    (folder / "experiments/command.toml").write_text(EXAMPLE.replace(old, new) if old else EXAMPLE)
    return resolve.plan("command", "course", [])


def started(folder: Path, old: str = "", new: str = "") -> dict[str, Launch]:
    """The process of each workload of the contended arm."""
    trial = contended(plan_of(folder, old, new))
    return {
        workload.name: launch
        for workload in trial.arm.workloads
        for launch in registry.of(workload).launches(workload, trial)
    }


def contended(plan: Plan) -> Trial:
    return next(trial for trial in plan.trials() if trial.arm.name == "contended")


def test_the_example_can_be_run(folder: Path) -> None:
    plan = plan_of(folder)
    claims.check(plan)
    emulated.check(plan)


def test_launches_have_phase_and_placeholders(folder: Path) -> None:
    processes = started(folder)
    server, load, client = processes["receiver"], processes["copy"], processes["client"]
    assert (server.phase, server.host, server.argv) == (
        "serve",
        "h11",
        ("iperf3", "-s", "-p", "7000"),
    )
    assert (server.listens, server.itself) == (("tcp", 7000), False)
    assert (load.phase, load.host, load.argv) == (
        "load",
        "h9",
        ("iperf3", "-c", "10.0.0.11", "-p", "7000", "-t", "13", "-J"),
    )
    assert load.itself and load.longest_s == 13
    assert (client.phase, client.host, client.itself, client.longest_s) == ("probe", "h8", True, 10)
    assert client.argv == ("ping", "-n", "-i", "0.1", "-c", "100", "10.0.0.11")
    assert client.output == "client-h8-h11.command.txt"


def test_placeholders_are_replaced(folder: Path) -> None:
    words = (
        "{host} {port} {seed} {duration_s} {warmup_s} {load_s} {output} {source} {destination} "
        "{address} {{host}}"
    )
    client = started(
        folder, CLIENT, f'command = "program {words} ${{HOME}}"'.replace("${HOME}", "$HOME")
    )["client"]
    port = contended(plan_of(folder)).arm.workloads[0].port
    assert client.argv == (
        *(
            "program",
            "h8",
            str(port),
            "1",
            "10",
            "2",
            "13",
            "client-h8-h11.output",
            "h8",
            "h11",
            "10.0.0.11",
            "{host}",
        ),
        "$HOME",
    )


def test_serving_command_runs_once_on_each_destination(folder: Path) -> None:
    old = 'hosts = ["h11"]\ncommand = "iperf3 -s -p 7000"\nready = { listens = "tcp:7000" }'
    flows = 'flows = ["h8>h11", "h9>h11", "h1>h2"]'
    new = f'{flows}\ncommand = "serve {{address}} {{output}}"\nready = {{ exists = "{{output}}" }}'
    plan = plan_of(folder, old, new)
    trial = contended(plan)
    workload = trial.arm.workloads[1]
    assert isinstance(workload, CommandPlan)
    servers = list(launches(workload, trial))
    assert [(server.host, server.argv[1]) for server in servers] == [
        ("h11", "10.0.0.11"),
        ("h2", "10.0.0.2"),
    ]
    assert [server.exists for server in servers] == ["receiver-h11.output", "receiver-h2.output"]


def test_preparing_command_ends_before_the_others_start(folder: Path) -> None:
    prepare = started(folder, 'ready = { listens = "tcp:7000" }', "")["receiver"]
    assert prepare.itself and (prepare.listens, prepare.says, prepare.exists) == (None, None, None)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "{address} -p",
            "{adress} -p",
            r"workloads\.copy\.command: there is no placeholder \{adress\}: use \{host\}, .*write "
            r"\{\{adress\}\}",
        ),
        (
            "iperf3 -s -p 7000",
            "iperf3 -s -B {address}",
            r"receiver\.command: \{address\} needs a flow, but hosts are given: give flows",
        ),
        (
            'hosts = ["h11"]',
            'hosts = ["h11"]\nflows = ["h1>h2"]',
            "workloads.receiver: give either hosts or flows, to say where it runs",
        ),
        (
            'hosts = ["h11"]',
            'hosts = ["h99"]',
            "receiver.hosts: topology 'paper12' has no host 'h99'",
        ),
        ('hosts = ["h11"]', 'hosts = ["h1", "h1"]', "receiver.hosts: a host is listed twice"),
        (
            'flows = ["h8>h11"]',
            'flows = ["h8>h99"]',
            "client.flows: topology 'paper12' has no host 'h99'",
        ),
        (
            "iperf3 -s -p 7000",
            "iperf3 '-s",
            "receiver.command: .* is not a command line: No closing quotation",
        ),
        ("iperf3 -s -p 7000", "", "receiver.command: the command is empty"),
        (
            'listens = "tcp:7000"',
            'listens = "7000"',
            "receiver.ready.listens: '7000' is not a port: write, for example, 'tcp:7000'",
        ),
        (
            'listens = "tcp:7000"',
            "",
            "receiver.ready: give exactly one of listens, says and exists",
        ),
        (
            'role = "serve"',
            'role = "load"',
            'receiver.ready: ready needs role = "serve"',
        ),
        (
            'role = "load"',
            'role = "disturb"',
            r"workloads\.copy\.role: 'disturb' is not possible: known are load, measure, serve",
        ),
        (
            CLIENT,
            f'{CLIENT}\nends = "terminated"',
            "client.ends: a command that measures ends the trial",
        ),
        (CLIENT, f"{CLIENT}\nretries = 3", "unknown field `retries`"),
        (
            "regex = 'time=([0-9.]+) ms'",
            "regex = 'time=([0-9.]+ ms'",
            r"numbers\.rtt\.regex: .* is not a regular expression: missing \)",
        ),
        (
            "regex = 'time=([0-9.]+) ms'",
            "regex = 'time=.*'",
            r"numbers\.rtt\.regex: 'time=\.\*' has no group: put the number in parent",
        ),
        ("regex = 'time=([0-9.]+) ms'", "", r"numbers\.rtt: give either regex or json"),
        (
            'json = "end.sum',
            'json = "end..sum',
            r"numbers\.received\.json: 'end\.\.sum.*' is not a path: character 4 is wrong",
        ),
        ('latency = "rtt"', 'latency = "delay"', "client.latency: there is no number 'delay'"),
        ('unit = "ms"', 'unit = "s"', r"numbers\.rtt\.unit: a latency needs the unit us or ms"),
        (
            "numbers.replies]",
            "numbers.p50_ms]",
            r"numbers\.p50_ms: there is another measure 'p50_ms'",
        ),
        (
            "numbers.replies]",
            "numbers.rtt_p50]",
            r"numbers\.rtt_p50: there is another measure 'rtt_p50'",
        ),
    ],
)
def test_invalid_settings_are_refused_with_their_location(
    old: str, new: str, sentence: str, folder: Path
) -> None:
    with pytest.raises(UsageError, match=sentence):
        plan_of(folder, old, new)


def test_claim_about_an_unknown_number_is_refused(folder: Path) -> None:
    with pytest.raises(
        UsageError,
        match="names no measure of that workload: there is no 'rtt_p5', did you mean 'rtt_p50'",
    ):
        claims.check(
            plan_of(
                folder, 'shows = "contended.client.rtt_p50 /', 'shows = "contended.client.rtt_p5 /'
            )
        )


def workload_of(plan: Plan, name: str) -> tuple[CommandPlan, Trial]:
    trial = contended(plan)
    workload = next(workload for workload in trial.arm.workloads if workload.name == name)
    assert isinstance(workload, CommandPlan)
    return workload, trial


def test_numbers_of_a_real_ping(folder: Path) -> None:
    workload, trial = workload_of(plan_of(folder), "client")
    (folder / "client-h8-h11.command.txt").write_text(PING)
    table = tables.table(workload, trial, folder)
    assert table["number"].to_pylist() == ["rtt"] * 100 + ["replies"]
    assert requests(table).num_rows == 100 and requests(table)["latency_us"][
        -1
    ].as_py() == pytest.approx(14000)
    values = measures.values(workload, table, trial, FACTS)
    assert set(values) == set(registry.headings(workload)) - {"rtt"}, (
        "one value is the number itself, a hundred are not"
    )
    assert (values["replies"], values["rtt_count"], values["rtt_min"], values["rtt_max"]) == (
        100,
        100,
        3.70,
        14.1,
    )
    assert values["rtt_p50"] == values["p50_ms"] and values["rtt_mean"] == pytest.approx(
        8.653, abs=0.01
    ), "as ping says"
    assert registry.headings(workload)["rtt_p50"] == "rtt median, ms"


def test_numbers_of_a_real_iperf3(folder: Path) -> None:
    workload, trial = workload_of(plan_of(folder), "copy")
    (folder / "copy-h9-h11.command.txt").write_text(IPERF)
    values = measures.values(workload, tables.table(workload, trial, folder), trial, FACTS)
    assert values["received"] == json.loads(IPERF)["end"]["sum_received"]["bits_per_second"]
    number = numbers.Number(json="intervals[*].streams[0].bytes")
    streams = [interval["streams"][0]["bytes"] for interval in json.loads(IPERF)["intervals"]]
    assert number.read("bytes", IPERF) == streams and len(streams) > 3


def test_command_without_numbers_needs_no_output(folder: Path) -> None:
    workload, trial = workload_of(plan_of(folder), "receiver")
    assert tables.table(workload, trial, folder).num_rows == 0
    assert measures.values(workload, tables.table(workload, trial, folder), trial, FACTS) == {}


def test_numbers_are_read_from_the_output_file(folder: Path) -> None:
    workload, trial = workload_of(
        plan_of(folder, CLIENT, 'command = "measure -o {output} {address}"'), "client"
    )
    (folder / "client-h8-h11.command.txt").write_text("this is not read\n")
    (folder / "client-h8-h11.output").write_text("time=2 ms\n1 received\n")
    values = measures.values(workload, tables.table(workload, trial, folder), trial, FACTS)
    assert values["rtt"] == 2


@pytest.mark.parametrize(
    ("name", "damage", "sentence"),
    [
        ("client", lambda text: "", "it is empty, nothing was printed"),
        (
            "client",
            lambda text: text.replace("received", "came"),
            r"number 'replies' is not in the output: '\(\\\\d\+\) received' matches",
        ),
        (
            "client",
            lambda text: text.replace("time=", "took="),
            "number 'rtt' is not in the output",
        ),
        (
            "client",
            lambda text: text.replace("time=4.29", "time=3.7.3"),
            r"number 'rtt': '3\.7\.3' is not a number",
        ),
        ("copy", lambda text: text[: len(text) // 2], "number 'received': the output is not JSON"),
        (
            "copy",
            lambda text: text.replace("sum_received", "sum"),
            "number 'received' is not in the output: there is no 'sum_received' of",
        ),
        (
            "copy",
            lambda text: '{"end": 1}',
            "number 'received' is not in the output: there is no 'sum_received'",
        ),
        (
            "copy",
            lambda text: '{"end": {"sum_received": {"bits_per_second": [1]}}}',
            r"number 'received': \[1\] is not a number",
        ),
    ],
)
def test_missing_number_is_lost_and_names_the_file(
    name: str, damage: Callable[[str], str], sentence: str, folder: Path
) -> None:
    workload, trial = workload_of(plan_of(folder), name)
    file, text = ("client-h8-h11", PING) if name == "client" else ("copy-h9-h11", IPERF)
    (folder / f"{file}.command.txt").write_text(damage(text))
    with pytest.raises(
        LostError, match=rf"on h\d+: raw/{file}\.command\.txt:? .*{sentence}|{sentence}"
    ) as lost:
        tables.table(workload, trial, folder)
    assert f"raw/{file}.command.txt" in str(lost.value)


def test_shell_words_give_one_remark(folder: Path) -> None:
    line = "FOO=1 cat $HOME * < in | grep a && touch x > out 2>&1 ; ls ~/a"
    plan = plan_of(folder, CLIENT, f'command = "{line}"')
    words = "FOO=1, $HOME, *, <, |, &&, >, 2>&1, ;, ~/a"
    (remark,) = [remark for remark in plan.shown.remarks if "no shell interprets" in remark]
    assert remark.startswith(
        f"workloads.client.command: no shell interprets {words}: the program gets the text as it is"
    )


@pytest.mark.parametrize(
    "line", ["sh -c 'a | b > $HOME/*'", "awk '{{{{ print }}}}' '*' 'a>b'", "env A=1 b", "./x=y"]
)
def test_quoted_words_give_no_remark(line: str, folder: Path) -> None:
    assert not [
        one
        for one in plan_of(folder, CLIENT, f'command = "{line}"').shown.remarks
        if "shell" in one
    ]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("FOO=1 env", "FOO=1"),
        ("./x=y", "./x=y"),
        ("env", "env"),
        ("env A=1", "env"),
        ("env A=1 b c", "b"),
    ],
)
def test_launch_program_skips_the_environment(line: str, shown: str, folder: Path) -> None:
    assert started(folder, CLIENT, f'command = "{line}"')["client"].shown == f"{shown} on h8"
