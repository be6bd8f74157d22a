"""One guest per core, served in order; a core is free again however its holder ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from qjump_mn.errors import MachineError
from qjump_mn.guest import cores
from qjump_mn.guest.cores import BusyError, StoppedError, core
from qjump_mn.guest.instance import Stop

HOLD = """
import sys
from qjump_mn.guest.cores import core
with core() as number:
    print(number, flush=True)
    sys.stdin.read()
"""

CONFINED = HOLD.replace(
    "with core", "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwith core"
)
"""The same on the first core alone."""

AFFINITY = os.sched_getaffinity

AGAIN = """
import os, sys, time
from qjump_mn.guest.cores import core
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
sys.stdin.readline()
for _ in range(8):
    with core():
        print(sys.argv[1], flush=True)
        time.sleep(0.02)
"""


@pytest.fixture(autouse=True)
def slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's own slots: guests may be running."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5})
    return tmp_path / f"qjump-mn-cores-{os.getuid()}"


def test_each_guest_has_a_core_of_its_own() -> None:
    with core() as one, core() as other:
        assert {one, other} == {3, 5}
    with core() as again:
        assert again == 3


class Waiter(threading.Thread):
    """A thread that takes a core, as soon as it is started, and notes which in `got`."""

    def __init__(self, got: list[int | None], slots: Path) -> None:
        super().__init__()
        self.got, waiting = got, len(tickets(slots))
        self.start()
        until(lambda: len(tickets(slots)) > waiting)

    def run(self) -> None:
        with core() as number:
            self.got.append(number)


def test_third_guest_waits_for_a_free_core(slots: Path) -> None:
    got: list[int | None] = []
    with ExitStack() as first, core() as one:
        other = first.enter_context(core())
        thread = Waiter(got, slots)
        thread.join(0.3)
        assert got == []
        first.close()
        thread.join(10)
        assert got == [other]
        assert one != other


def test_interactive_guest_takes_a_place_beside_a_core(slots: Path) -> None:
    with ExitStack() as held:
        assert {held.enter_context(core(interactive=True)) for _ in range(2)} == {3, 5}
        assert {held.enter_context(core(interactive=True)) for _ in range(2)} == {None}
        with pytest.raises(BusyError), core(interactive=True, patience_s=0.1):
            pass
        with pytest.raises(BusyError), core(patience_s=0.1):
            pass


def test_killed_holder_frees_its_core(slots: Path, only: int) -> None:
    got: list[int | None] = []
    with process(CONFINED) as holder:
        assert holder.stdout is not None and int(holder.stdout.readline()) == only
        thread = Waiter(got, slots)
        thread.join(0.3)
        assert got == []
        holder.kill()
        thread.join(10)
        assert got == [only]


@pytest.mark.root
def test_roots_folder_is_writable_by_root_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(cores, "_RUNTIME", tmp_path / "run")
    for name in ("temporary", "run"):
        (tmp_path / name).mkdir()
    with core():
        assert list((tmp_path / "run/qjump-mn-cores").glob("[35]"))
    (tmp_path / "run").chmod(0o777)
    with core():
        assert list(tmp_path.glob("temporary/qjump-mn-cores-0/[35]"))


@pytest.mark.root
def test_names_taken_in_tmp_by_others_are_skipped(tmp_path: Path) -> None:
    """All sessions take the first name that is left."""
    names = [tmp_path / f"qjump-mn-cores-{os.getuid()}{suffix}" for suffix in ("", 1, 2)]
    make_for_nobody(names[0])
    names[1].symlink_to(tmp_path / "elsewhere")
    with core() as one, core() as other:
        assert {one, other} == {3, 5}
        assert {file.parent for file in tmp_path.glob("qjump-mn-cores-*/[35]")} == {names[2]}
    for suffix in range(2, cores._TRIES):
        make_for_nobody(tmp_path / f"qjump-mn-cores-{os.getuid()}{suffix}")
    with pytest.raises(MachineError, match="no folder to lock cores in"), core():
        pass


def make_for_nobody(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    os.chown(folder, 65534, 65534)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def tickets(slots: Path) -> list[Path]:
    return sorted(slots.glob("wait-*"))


@contextmanager
def process(
    code: str, *arguments: str, stdout: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=stdout, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> int:
    """The one core that this test and its processes share."""
    number = min(AFFINITY(0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {number})
    return number


def test_three_processes_take_turns(slots: Path, only: int) -> None:
    ours, theirs = os.pipe()
    with ExitStack() as stack:
        processes = [stack.enter_context(process(AGAIN, name, stdout=theirs)) for name in "abc"]
        os.close(theirs)
        with core() as number:  # until all of them have asked
            assert number == only
            for one in processes:
                assert one.stdin is not None
                one.stdin.write("go\n")
                one.stdin.flush()
            until(lambda: len(tickets(slots)) == len(processes))
        with os.fdopen(ours) as lines:
            got = "".join(lines.read().split())
    assert len(got) == 24
    all_ask = max(got.index(name) for name in "abc")
    all_still_ask = min(got.rindex(name) for name in "abc")
    turns = got[all_ask : all_still_ask + 1]
    assert len(turns) >= 12
    assert all(len(set(turns[index : index + 3])) == 3 for index in range(len(turns) - 2)), got


def test_threads_of_a_process_are_served_in_order(slots: Path, only: int) -> None:
    got: list[int | None] = []
    told: list[str] = []

    def wait(index: int) -> None:
        with core(lambda line: told.append(f"{index} {line}")):
            got.append(index)

    threads = [threading.Thread(target=wait, args=(index,)) for index in range(5)]
    with core() as number:
        assert number == only
        for index, thread in enumerate(threads):
            thread.start()
            # It is told to wait: it has locked its ticket.
            until(lambda index=index: any(line.startswith(str(index)) for line in told))  # type: ignore[misc]
    for thread in threads:
        thread.join(10)
    assert got == [0, 1, 2, 3, 4]
    assert tickets(slots) == []


def test_short_guest_passes_long_one_for_a_limited_time(
    slots: Path, only: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def one(name: str, long: bool) -> None:
        with core(long=long):
            order.append(name)

    def asked(yields_s: float) -> list[str]:
        monkeypatch.setattr(cores, "YIELDS_S", yields_s)
        order.clear()
        with core():
            threads = []
            for name, long in (("long", True), ("short", False)):
                threads.append(threading.Thread(target=one, args=(name, long)))
                threads[-1].start()
                until(lambda: len(tickets(slots)) == len(threads))
        for thread in threads:
            thread.join()
        return list(order)

    assert asked(600) == ["short", "long"]
    assert asked(0) == ["long", "short"], "it has waited long enough"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_killed_or_stopped_waiters_are_passed(slots: Path, only: int, how: signal.Signals) -> None:
    got: list[int | None] = []
    with process(CONFINED) as first, ExitStack() as held:
        held.enter_context(core())
        until(lambda: len(tickets(slots)) == 1)
        thread = Waiter(got, slots)
        first.send_signal(how)
        if how == signal.SIGKILL:
            first.wait()
            until(lambda: len(tickets(slots)) == 1)
        assert got == []
        held.close()
        thread.join(10)
        assert got == [only]
        assert len(tickets(slots)) == (how == signal.SIGSTOP)


def test_core_that_no_earlier_waiter_may_use_is_taken(
    slots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other, main = 3, 5, threading.get_native_id()

    def affinity(thread: int) -> set[int]:
        return {one, other} if (thread or threading.get_native_id()) == main else {one}

    monkeypatch.setattr(os, "sched_getaffinity", affinity)
    with core() as held:
        assert held == one
        thread = Waiter([], slots)
        with core() as number:
            assert number == other
    thread.join(10)


def test_waiting_is_reported_when_it_changes(slots: Path, only: int) -> None:
    lines: list[str] = []
    stop = threading.Event()
    ended: list[StoppedError] = []

    def wait() -> None:
        try:
            with core(lines.append, stop):
                pass
        except StoppedError as error:
            ended.append(error)

    waiting, clocks = threading.Thread(target=wait), {time.strftime("%H:%M")}
    with process(CONFINED, "--of-somebody-else") as holder:
        assert holder.stdout is not None and int(holder.stdout.readline()) == only
        with process(CONFINED) as ahead:
            until(lambda: tickets(slots))
            waiting.start()
            until(lambda: lines)
            assert re.fullmatch(rf"{holder.pid} \d+", (slots / str(only)).read_text())
            waiting.join(2)
            assert len(lines) == 1
            holder.kill()
            until(lambda: len(lines) == 2)
            waiting.join(1.5)
            stop.set()
            waiting.join(20)
    clocks.add(time.strftime("%H:%M"))
    assert [re.sub(r"\d\d:\d\d", "HH:MM", line) for line in lines] == [
        f"waits for a core: pid {holder.pid} since HH:MM; 1 ahead",
        f"waits for a core: pid {ahead.pid} since HH:MM",
    ]
    assert {clock for line in lines for clock in re.findall(r"\d\d:\d\d", line)} <= clocks
    assert len(ended) == 1 and tickets(slots) == []
    with pytest.raises(StoppedError), core(stop=stop):
        pass


def test_own_threads_are_not_reported(
    slots: Path, only: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "_SILENT_S", 0.1)
    lines: list[str] = []
    stop = threading.Event()

    def wait() -> None:
        with pytest.raises(StoppedError), core(lines.append, stop):
            pass

    threads = [threading.Thread(target=wait) for _ in range(3)]
    with core():
        for thread in threads:
            thread.start()
        until(lambda: len(lines) == len(threads))
        stop.set()
        for thread in threads:
            thread.join(20)
    assert set(lines) == {"waits for a core"}


def test_busy_error_names_pids_of_holders(slots: Path) -> None:
    holds = HOLD.replace(
        "with core", "import os; os.sched_getaffinity = lambda pid: {3, 5}\nwith core"
    )
    with process(holds) as one, process(holds) as other:
        for holder in (one, other):
            assert holder.stdout is not None and holder.stdout.readline()
        began = time.monotonic()
        with (
            pytest.raises(BusyError, match=r"^all cores are taken \(pids \d+, \d+\)$") as caught,
            core(patience_s=0.5),
        ):
            pass
        assert 0.5 < time.monotonic() - began < 5
        assert set(re.findall(r"\d+", str(caught.value))) == {str(one.pid), str(other.pid)}
        assert tickets(slots) == []
        one.kill()
        with core(patience_s=10) as number:
            assert number in {3, 5}


def test_no_process_starts_after_stop() -> None:
    stop, started = Stop(), []

    def start() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sleep", "60"]))
        return started[-1]

    with stop.running(start) as running:
        stop.now()
        assert running.wait(5) == -signal.SIGKILL
    with pytest.raises(StoppedError), stop.running(start):
        pass
    assert len(started) == 1
