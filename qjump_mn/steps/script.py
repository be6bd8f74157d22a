"""Print steps as an equivalent shell script: the output of ``--dry-run``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from qjump_mn.executor.shell import inside
from qjump_mn.executor.steps import (
    Announce,
    AnyStep,
    Finish,
    Mark,
    Measure,
    Measured,
    Offloads,
    Read,
    ReadSettings,
    Run,
    Settings,
    Sleep,
    Start,
    Steps,
    Stop,
    Topology,
    Wait,
)
from qjump_mn.links.commands import offloads
from qjump_mn.model.plan import Plan
from qjump_mn.model.topology import Network
from qjump_mn.steps.compile import trial_steps
from qjump_mn.steps.network import bring_up

PROLOGUE = """set -eu
# until_done SECONDS WHAT COMMAND...: tries the command until it succeeds.
until_done() {
    seconds=$1 what=$2 began=$(date +%s)
    shift 2
    until "$@"; do
        [ $(($(date +%s) - began)) -lt "$seconds" ] ||
            { echo "$what after $seconds s" >&2; exit 5; }
        sleep 0.05
    done
}
# sleep_since MARK SECONDS: sleeps until so long after the instant MARK.
sleep_since() {
    sleep "$(awk -v end="$1 $2" -v now="$(date +%s.%N)" 'BEGIN {
        split(end, part); left = part[1] + part[2] - now; print (left > 0 ? left : 0) }')"
}
# ended PID STATUS...: waits for a program, which must end with one of these.
ended() {
    pid=$1 status=0
    shift
    wait "$pid" || status=$?
    case " $* " in
        *" $status "*) ;;
        *) echo "process $pid ended with status $status" >&2; exit 5 ;;
    esac
}
"""
TERMINATED = 143
"""The exit status that a shell reports for a process ended by SIGTERM."""


class Script:
    """Turn steps into shell commands, and collect the commands that undo them."""

    def __init__(self) -> None:
        self._undo: list[tuple[str, str]] = []  # each command with its standard input
        self._saved = 0
        self._programs: dict[str, Start] = {}

    def lines(self, steps: Steps) -> Iterator[str]:
        """Yield the lines of ``steps``, in order."""
        for step in steps:
            yield from self._step(step)

    def undo(self) -> Iterator[str]:
        """Yield the lines that undo all steps since the last call, in reverse order."""
        yield from (
            _with_stdin(command, text, " || true") for command, text in reversed(self._undo)
        )
        self._undo.clear()

    def _step(self, step: AnyStep) -> Iterator[str]:
        match step:
            case Topology():
                yield from self._topology(step)
            case Settings():
                yield from self._settings(step)
            case ReadSettings():
                yield from self._step(
                    Read(node=step.node, argv=("sysctl", *step.keys), output=step.output)
                )
            case Offloads():
                yield from self._offloads(step)
            case Announce():
                ping = ("ping", "-bnq", "-c1", "-W1", step.address)
                yield f"{_command(step.node, ping)} > /dev/null 2>&1 || :"
            case Run():
                yield from self._run(step)
            case Read():
                yield f"mkdir -p {shlex.quote(step.output.rpartition('/')[0] or '.')}"
                yield f"{_command(step.node, step.argv)} > {shlex.quote(step.output)}"
            case Start() | Wait() | Finish() | Stop():
                yield from self._program(step)
            case Mark():
                yield f"{step.name}=$(date +%s.%N)"
            case Sleep():
                since = f'sleep_since "${step.mark}"' if step.mark else "sleep"
                yield f"{since} {step.after_s:g}"
            case Measure():
                yield "measurement=$(date +%s.%N)  # the measurement begins"
            case Measured():
                yield "# the measurement ends"

    def _program(self, step: Start | Wait | Finish | Stop) -> Iterator[str]:
        """Yield the lines that start a program, wait until it is ready, or end it."""
        match step:
            case Start():
                self._programs[step.output] = step
                output = shlex.quote(step.output)
                errors = shlex.quote(f"{step.output}.stderr")
                command = _command(step.node, step.argv)
                yield f"cd raw; {command} < /dev/null > {output} 2> {errors} &"
                yield f"{self._pid(step.output)}=$!; cd .."
            case Wait():
                condition = f"{shlex.quote(step.lacks)} {_command(step.node, step.argv)}"
                yield f"cd raw; until_done {step.deadline_s:g} {condition}; cd .."
            case Finish():
                good = " ".join(map(str, self._programs[step.program].good))
                pid = self._pid(step.program)
                yield f'ended "${pid}" {good}  # at most {step.deadline_s:g} s after its start'
            case Stop():
                good = " ".join(map(str, (*self._programs[step.program].good, TERMINATED)))
                pid = self._pid(step.program)
                yield f'kill -TERM "${pid}"; ended "${pid}" {good}  # at most {step.deadline_s:g} s'

    def _topology(self, step: Topology) -> Iterator[str]:
        pairs = [[end for end in cable.ends if end.node not in step.hosts] for cable in step.cables]
        for host in step.hosts:
            self._undo.append((shlex.join(("ip", "netns", "delete", host)), ""))
            yield shlex.join(("ip", "netns", "add", host))
        self._undo.append(
            ("ip -force -batch -", "".join(f"link delete {pair[0].device}\n" for pair in pairs))
        )
        yield _with_stdin("ip -batch -", "".join(f"{cable.line}\n" for cable in step.cables))
        for switch in step.switches:
            name = shlex.quote(switch.name)
            self._undo.append((f"ovs-vsctl del-br {name}", ""))
            yield (
                f"ovs-vsctl add-br {name} -- set bridge {name} fail_mode=standalone "
                f"other_config:datapath-id={switch.dpid} other-config:disable-in-band=true"
            )
        yield from (
            shlex.join(("ovs-vsctl", "add-port", port.node, port.device))
            for pair in pairs
            for port in pair
        )

    def _settings(self, step: Settings) -> Iterator[str]:
        lines = "".join(f"{key} = {value}\n" for key, value in step.values.items())
        if step.restored:
            argv = ("sysctl", "-qp", "-")
            undo = Run(node=step.node, argv=argv)
            saves = ("sysctl", *step.values)
            yield from self._run(
                Run(node=step.node, argv=argv, stdin=lines, saves=saves, undo=undo)
            )
        else:
            yield _with_stdin(_command(step.node, ("sysctl", "-eqp", "-")), lines)

    def _offloads(self, step: Offloads) -> Iterator[str]:
        for device in step.devices:
            if step.on:
                turn = ("ethtool", "-K", device)
                self._undo.append((_command(step.node, (*turn, "tso", "off", "gso", "off")), ""))
                yield _command(step.node, (*turn, "tso", "on", "gso", "on"))
            else:
                yield _command(step.node, tuple(offloads(device)))

    def _run(self, step: Run) -> Iterator[str]:
        saved = ""
        if step.saves:
            self._saved += 1
            saved = f"saved{self._saved}"
            yield f"{saved}=$({_command(step.node, step.saves)})"
        if step.undo is not None:
            before = f"printf '%s\\n' \"${saved}\" | " if saved else ""
            self._undo.append(
                (f"{before}{_command(step.undo.node, step.undo.argv)}", step.undo.stdin)
            )
        yield _with_stdin(_command(step.node, step.argv), step.stdin)

    def _pid(self, program: str) -> str:
        return f"pid{list(self._programs).index(program)}"


def _command(node: str, argv: tuple[str, ...]) -> str:
    return shlex.join(inside(node, argv))


def _with_stdin(command: str, text: str, after: str = "") -> str:
    """Return the command with ``text``, which ends with a newline, as a here-document."""
    if not text:
        return f"{command}{after}"
    end = "END"
    while end in text.split("\n"):
        end += "_"
    return f"{command} << '{end}'{after}\n{text}{end}"


def lines(plan: Plan) -> Iterator[str]:
    """Yield the script of a plan, which leaves nothing behind but the trials' files.

    It brings the network up, then runs and undoes each trial in its own folder. When a trial needs
    another network, that replaces the one before.
    """
    yield "#!/bin/sh"
    yield _comment(
        f"{plan.shown.experiment}, preset {plan.shown.preset}. Run it as root, with Open vSwitch "
        "running."
    )
    yield "# Each trial leaves a folder below trials/."
    yield PROLOGUE.rstrip()
    script, current = Script(), None
    network_undo: list[str] = []
    for trial in plan.trials():
        skeleton = trial.network.skeleton()
        if skeleton != current:
            yield from network_undo
            yield ""
            yield _comment(_summary(trial.network))
            yield from script.lines(bring_up(skeleton))
            network_undo, current = list(script.undo()), skeleton
        folder = shlex.quote(f"trials/{trial.name}")
        yield ""
        yield _comment(f"arm {trial.arm.name} ({trial.arm.label}), seed {trial.seed}")
        yield f"mkdir -p {folder}/raw; cd {folder}"
        yield from script.lines(trial_steps(trial))
        yield "# undo"
        yield from script.undo()
        yield "cd ../../.."
    yield ""
    yield from network_undo


def _comment(text: str) -> str:
    """Return a comment of one line, even if ``text`` has several."""
    return f"# {' '.join(text.split())}"


def _summary(network: Network) -> str:
    size = f"{len(network.hosts)} hosts, {len(network.switches)} switches"
    return f"{network.topology}: {size}, links of model {network.model}"
