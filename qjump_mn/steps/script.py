"""Steps as a shell script that does the same: what ``--dry-run`` prints, and what a reader may paste."""

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
        [ $(($(date +%s) - began)) -lt "$seconds" ] || { echo "$what after $seconds s" >&2; exit 5; }
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
    case " $* " in *" $status "*) ;; *) echo "process $pid ended with status $status" >&2; exit 5 ;; esac
}
"""
TERMINATED = 143
"""The status of a process that SIGTERM has ended, as a shell tells it."""


class Script:
    """Prints steps in their order; what takes them back is printed by :meth:`undo`, the last one first."""

    def __init__(self) -> None:
        self._undo: list[tuple[str, str]] = []  # each with its standard input
        self._saved = 0
        self._programs: dict[str, Start] = {}

    def lines(self, steps: Steps) -> Iterator[str]:
        """The commands of ``steps``."""
        for step in steps:
            yield from self._step(step)

    def undo(self) -> Iterator[str]:
        """What takes back all that was printed since the last time."""
        yield from (_given(command, text, " || true") for command, text in reversed(self._undo))
        self._undo.clear()

    def _step(self, step: AnyStep) -> Iterator[str]:
        match step:
            case Topology():
                yield from self._topology(step)
            case Settings():
                yield from self._settings(step)
            case ReadSettings():
                yield from self._step(Read(node=step.node, argv=("sysctl", *step.keys), output=step.output))
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
            case Start():
                self._programs[step.output] = step
                output = shlex.quote(step.output)
                errors = shlex.quote(f"{step.output}.stderr")
                yield f"cd raw; {_command(step.node, step.argv)} < /dev/null > {output} 2> {errors} &"
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
            case Mark():
                yield f"{step.name}=$(date +%s.%N)"
            case Sleep():
                yield (
                    f'sleep_since "${step.mark}" {step.after_s:g}' if step.mark else f"sleep {step.after_s:g}"
                )
            case Measure():
                yield "measurement=$(date +%s.%N)  # here the measurement begins"
            case Measured():
                yield "# here it ends"

    def _topology(self, step: Topology) -> Iterator[str]:
        pairs = [[end for end in cable.ends if end.node not in step.hosts] for cable in step.cables]
        for host in step.hosts:
            self._undo.append((shlex.join(("ip", "netns", "delete", host)), ""))
            yield shlex.join(("ip", "netns", "add", host))
        self._undo.append(
            ("ip -force -batch -", "".join(f"link delete {pair[0].device}\n" for pair in pairs))
        )
        yield _given("ip -batch -", "".join(f"{cable.line}\n" for cable in step.cables))
        for switch in step.switches:
            name = shlex.quote(switch.name)
            self._undo.append((f"ovs-vsctl del-br {name}", ""))
            yield (
                f"ovs-vsctl add-br {name} -- set bridge {name} fail_mode=standalone "
                f"other_config:datapath-id={switch.dpid} other-config:disable-in-band=true"
            )
        yield from (
            shlex.join(("ovs-vsctl", "add-port", port.node, port.device)) for pair in pairs for port in pair
        )

    def _settings(self, step: Settings) -> Iterator[str]:
        lines = "".join(f"{key} = {value}\n" for key, value in step.values.items())
        if step.restored:
            argv = ("sysctl", "-qp", "-")
            undo = Run(node=step.node, argv=argv)
            saves = ("sysctl", *step.values)
            yield from self._run(Run(node=step.node, argv=argv, stdin=lines, saves=saves, undo=undo))
        else:
            yield _given(_command(step.node, ("sysctl", "-eqp", "-")), lines)

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
            self._undo.append((f"{before}{_command(step.undo.node, step.undo.argv)}", step.undo.stdin))
        yield _given(_command(step.node, step.argv), step.stdin)

    def _pid(self, program: str) -> str:
        return f"pid{list(self._programs).index(program)}"


def _command(node: str, argv: tuple[str, ...]) -> str:
    return shlex.join(inside(node, argv))


def _given(command: str, text: str, after: str = "") -> str:
    """The command with ``text``, which ends with a line's end, as its standard input."""
    if not text:
        return f"{command}{after}"
    end = "END"
    while end in text.split("\n"):
        end += "_"
    return f"{command} << '{end}'{after}\n{text}{end}"


def lines(plan: Plan) -> Iterator[str]:
    """The script of a plan: the network is brought up, then every trial is run in a folder of its own and
    undone; at the end nothing is left but its files. A network of another kind takes the place of the one
    before it."""
    yield "#!/bin/sh"
    yield _comment(f"{plan.experiment}, preset {plan.preset}. Run it as root, with Open vSwitch running.")
    yield "# Each trial leaves a folder below trials/."
    yield PROLOGUE.rstrip()
    script, up = Script(), None
    network_undo: list[str] = []
    for trial in plan.trials():
        skeleton = trial.network.skeleton()
        if skeleton != up:
            yield from network_undo
            yield ""
            yield _comment(_about(trial.network))
            yield from script.lines(bring_up(skeleton))
            network_undo, up = list(script.undo()), skeleton
        folder = shlex.quote(f"trials/{trial.name}")
        yield ""
        yield _comment(f"arm {trial.arm.name} ({trial.arm.label}), seed {trial.seed}")
        yield f"mkdir -p {folder}/raw; cd {folder}"
        yield from script.lines(trial_steps(trial))
        yield "# taken back"
        yield from script.undo()
        yield "cd ../../.."
    yield ""
    yield from network_undo


def _comment(text: str) -> str:
    """A comment of one line, whatever is in ``text``."""
    return f"# {' '.join(text.split())}"


def _about(network: Network) -> str:
    size = f"{len(network.hosts)} hosts, {len(network.switches)} switches"
    return f"{network.topology}: {size}, links of model {network.model}"
