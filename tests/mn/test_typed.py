"""What is typed into a command is recorded, and typed again."""

from __future__ import annotations

import io
import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.mn import typed
from qjump_mn.mn.keyboard import Keyboard
from qjump_mn.mn.typed import INTERRUPT, Replay, Typed


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def test_record_of_a_file_is_replayed(pipe: tuple[int, int], tmp_path: Path) -> None:
    read, write = pipe
    os.write(write, "nodes\nh1 ping h2\nü".encode())
    os.close(write)
    keyboard = Keyboard(read)
    lines = [keyboard.line(time_ns) for time_ns in range(5)]
    assert lines == [b"nodes\n", b"h1 ping h2\n", "ü\n".encode(), b"", b""]
    path = tmp_path / "typed"
    path.write_bytes(typed.encode(keyboard.record))
    replay = Replay(typed.read(path))
    assert [replay.line(time_ns) for time_ns in range(6)] == [*lines, b""]


def test_interrupt_is_typed_once_and_at_its_time_again(pipe: tuple[int, int]) -> None:
    keyboard = Keyboard(pipe[0])
    assert keyboard.interrupt(5) == b""
    assert not keyboard.press_interrupt()
    assert keyboard.press_interrupt()
    assert [keyboard.interrupt(7), keyboard.interrupt(8)] == [INTERRUPT, b""]
    replay = Replay(keyboard.record)
    assert [replay.interrupt(time_ns) for time_ns in (6, 7, 8)] == [b"", INTERRUPT, b""]


def test_interrupt_ends_the_wait_for_a_line_and_the_input_goes_on(pipe: tuple[int, int]) -> None:
    keyboard = Keyboard(pipe[0])
    keyboard.press_interrupt()
    assert keyboard.line(3) == INTERRUPT
    # One that was typed while the command ran does not end the next wait.
    keyboard.press_interrupt()
    assert keyboard.interrupt(4) == INTERRUPT
    os.write(pipe[1], b"exit\n")
    assert keyboard.line(5) == b"exit\n"
    kept = [Typed(interrupt_ns=3), Typed(interrupt_ns=4), Typed(line="exit")]
    assert keyboard.record == kept
    keyboard.close()
    assert keyboard.line(6) == b""


def test_echo_of_what_a_person_typed_is_not_shown_again() -> None:
    main, terminal = pty.openpty()
    keyboard, shown = Keyboard(terminal), io.BytesIO()
    assert keyboard.is_person
    os.write(main, b"nodes\n")
    keyboard.line(0)
    for part in (b"no", b"des\nh1 h2\n", b"nodes\n"):
        keyboard.show(part, shown)
    assert shown.getvalue() == b"h1 h2\nnodes\n"
    os.close(main)
    os.close(terminal)


@pytest.mark.parametrize("text", ["nodes\n", '{"line": 3}\n', '{"unknown": 1}\n'])
def test_file_that_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "typed"
    path.write_text(text)
    with pytest.raises(UsageError, match="is no record of a session"):
        typed.read(path)
