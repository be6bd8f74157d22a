"""Coordinator and clients together, and what each does with messages that are lost, repeated, late
or none of theirs."""

from __future__ import annotations

import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.native_programs import WAIT_S, Log, Program, Running, free_port

MS = 1_000_000
S = 1000 * MS
PREPARE, COMMIT = 1, 2
ORDER, ANSWER = 1, 2
EVERY_CLIENT = 255


class Message(NamedTuple):
    kind: int
    phase: int
    client: int
    request: int

    def pack(self) -> bytes:
        return struct.pack("!4sBBBxQ", b"qj2p", self.kind, self.phase, self.client, self.request)

    def answered(self, client: int | None = None) -> bytes:
        return self._replace(kind=ANSWER, client=self.client if client is None else client).pack()


def unpack(data: bytes) -> Message:
    magic, *rest = struct.unpack("!4sBBBxQ", data)
    assert magic == b"qj2p"
    return Message(*rest)


def coordinator(
    transport: str, where: list[int], *options: object, duration: int = 3600 * S
) -> list[str]:
    """where: the ports of the clients; with broadcast the port and the number of clients."""
    to = f"--peers {','.join(f'127.0.0.1:{port}' for port in where)}"
    if transport == "broadcast":
        to = f"--broadcast 127.255.255.255:{where[0]} --clients {where[1]}"
    line = f"coordinate --transport {transport} {to} --duration {duration}"
    return [*line.split(), *map(str, options)]


@contextmanager
def clients(
    q2pc: Program, transport: str, number: int, *options: str
) -> Iterator[tuple[list[int], list[Running]]]:
    kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
    protocol = "tcp" if transport == "tcp" else "udp"
    shared = free_port(kind)
    with ExitStack() as stack:
        ports, running = [], []
        for i in range(number):
            port = shared if transport == "broadcast" else free_port(kind)
            own = f"--client {i}" if transport == "broadcast" else ""
            line = f"serve --transport {transport} --port {port} {own}"
            running.append(stack.enter_context(q2pc.started(*line.split(), *options)))
            running[-1].wait_for_port(protocol, port)
            ports.append(port)
        yield ([shared, number] if transport == "broadcast" else ports), running


@contextmanager
def datagram_clients(number: int, port: int = 0) -> Iterator[tuple[list[int], list[socket.socket]]]:
    """Sockets that stand for clients: of their own ports, or all of one that takes broadcasts."""
    with ExitStack() as stack:
        made = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(number)]
        sockets = [stack.enter_context(each) for each in made]
        for each in sockets:
            each.settimeout(WAIT_S)
            if port:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("" if port else "127.0.0.1", port))
        yield [each.getsockname()[1] for each in sockets], sockets


def check_order(log: Log) -> None:
    done = [row for row in log.rows if not row["failed"]]
    assert all(row["start_ns"] < row["votes_ns"] < row["end_ns"] for row in done)
    assert all(before["end_ns"] <= after["start_ns"] for before, after in pairwise(log.rows))


@pytest.mark.parametrize("transport", ["tcp", "udp", "broadcast"])
def test_every_client_prepares_and_commits(q2pc: Program, transport: str) -> None:
    with clients(q2pc, transport, 7) as (where, running):
        patience = {"tcp": (), "udp": ("--rto", 3600 * S), "broadcast": ("--wait", 3600 * S)}
        log = q2pc.log(*coordinator(transport, where, "--requests", 50, *patience[transport]))
        served = [client.ended() for client in running]
    check_order(log)
    told = {"transport": transport, "clients": "7", "message": "16"}
    assert told.items() <= log.parameters.items()
    assert len(log.rows) == 50 and set(log.column("retries")) == set(log.column("failed")) == {0}
    # They come back to back.
    assert all(before["end_ns"] == after["start_ns"] for before, after in pairwise(log.rows))
    none = "early failed unfinished retries repeated late foreign".split()
    assert (dict.fromkeys(none, 0) | {"rows": 50, "completed": 50}).items() <= log.end.items()
    for client in served:
        assert client.rows == [{"orders": 100, "repeated": 0, "unprepared": 0, "foreign": 0}]


@pytest.mark.parametrize("transport", ["tcp", "udp", "broadcast"])
def test_the_largest_messages(q2pc: Program, transport: str) -> None:
    with clients(q2pc, transport, 2, "--message", "1472") as (where, running):
        log = q2pc.log(*coordinator(transport, where, "--requests", "3", "--message", "1472"))
        assert log.end["completed"] == 3
        assert all(client.ended().rows[0]["orders"] >= 6 for client in running)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_as_many_clients_as_there_may_be(q2pc: Program, transport: str) -> None:
    with clients(q2pc, transport, 64) as (where, _):
        assert q2pc.log(*coordinator(transport, where, "--requests", "2")).end["completed"] == 2


def test_one_coordinator_after_another(q2pc: Program) -> None:
    with clients(q2pc, "tcp", 2) as (where, running):
        for _ in range(2):
            assert q2pc.log(*coordinator("tcp", where, "--requests", "3")).end["completed"] == 3
        assert [client.ended().rows[0]["orders"] for client in running] == [12, 12]


def test_requests_keep_their_distance(q2pc: Program) -> None:
    with clients(q2pc, "udp", 1) as (where, _):
        log = q2pc.log(*coordinator("udp", where, "--requests", "5", "--interval", str(20 * MS)))
    for before, after in pairwise(log.rows):
        assert after["start_ns"] - before["start_ns"] >= 20 * MS
        assert after["start_ns"] >= before["end_ns"], "one that takes longer is waited for"


def test_the_duration_ends_a_run(q2pc: Program) -> None:
    with clients(q2pc, "tcp", 2) as (where, _):
        log = q2pc.log(*coordinator("tcp", where, duration=50 * MS))
    check_order(log)
    assert log.end["early"] == 0 and log.end["elapsed_ns"] >= 50 * MS
    assert log.end["completed"] == len(log.rows) != 0
    assert all(row["start_ns"] < log.rows[0]["start_ns"] + 50 * MS for row in log.rows)


def left_over(client: socket.socket) -> int:
    """How many messages nobody has read."""
    client.setblocking(False)
    count = 0
    with suppress(BlockingIOError):
        while client.recv(100):
            count += 1
    return count


def test_only_who_has_not_answered_is_asked_again(q2pc: Program) -> None:
    """Client 1 hears the fourth copy of each order only, client 0 the first."""
    copies = {0: 0, 1: 0}
    with (
        datagram_clients(2) as (ports, (quick, deaf)),
        q2pc.started(*coordinator("udp", ports, "--requests", 2, "--rto", 50 * MS)) as coordinating,
    ):

        def hear(client: int, right: Message) -> tuple[str, int]:
            """Take messages until this one comes: before it, copies of the phase before."""
            while True:
                data, source = (quick, deaf)[client].recvfrom(100)
                copies[client] += 1
                if (came := unpack(data)) == right:
                    return str(source[0]), int(source[1])
                assert (came.phase, came.request) != (right.phase, right.request)

        for request, phase in ((1, PREPARE), (1, COMMIT), (2, PREPARE), (2, COMMIT)):
            orders = [Message(ORDER, phase, client, request) for client in (0, 1)]
            for heard in range(4):
                source = hear(1, orders[1])
                if heard == 0:
                    quick.sendto(orders[0].answered(), hear(0, orders[0]))
                coordinating.wait_until_it_sleeps()  # also after its timer went off
            deaf.sendto(orders[1].answered(), source)
        log = coordinating.log()
        copies[0] += left_over(quick)
        copies[1] += left_over(deaf)
    check_order(log)
    assert log.end["completed"] == 2
    assert sum(log.column("retries")) == log.end["retries"] == sum(copies.values()) - 8
    assert copies[1] >= 16 and copies[0] < copies[1], "whoever has answered is left alone"
    assert all(row["end_ns"] - row["start_ns"] >= 2 * 3 * 50 * MS for row in log.rows)


def test_one_client_cannot_vote_twice(q2pc: Program) -> None:
    with (
        datagram_clients(2) as (ports, (eager, silent)),
        q2pc.started(*coordinator("udp", ports, "--rto", 3600 * S)) as coordinating,
    ):
        order, source = eager.recvfrom(100)
        for _ in range(3):
            eager.sendto(unpack(order).answered(), source)
        # The other's vote, from the wrong place.
        eager.sendto(unpack(order)._replace(client=1).answered(), source)
        last, _ = silent.recvfrom(100)
        assert unpack(last) == Message(ORDER, PREPARE, 1, 1)
        log = coordinating.ended()
    assert not log.rows and (log.end["early"], log.end["unfinished"]) == (1, 1)
    assert log.end["repeated"] <= 2 and log.end["foreign"] <= 1, "what was read before the signal"


def test_repeated_late_and_foreign_answers_are_told_apart(q2pc: Program) -> None:
    with (
        datagram_clients(2) as (ports, (chatty, other)),
        q2pc.started(
            *coordinator("udp", ports, "--requests", 2, "--rto", 3600 * S)
        ) as coordinating,
    ):
        for _ in range(4):
            order, source = chatty.recvfrom(100)
            right = unpack(order)
            for answer in (
                right.answered(), right.answered(),  # repeated
                right._replace(request=right.request - 1).answered(), right._replace(phase=3 - right.phase).answered(),  # late
                right.pack(), right._replace(client=1).answered(), b"x" * 16, right.answered()[:15], right.answered() + b"x",  # foreign; no message
            ):  # fmt: skip
                chatty.sendto(answer, source)
            # The other one answers once all of that was taken: its order is the same, so it may
            # wait for the queue to be empty.
            wait_until_read("udp", source[1])
            order, source = other.recvfrom(100)
            other.sendto(unpack(order).answered(), source)
        log = coordinating.log()
    counts = {"completed": 2, "retries": 0, "repeated": 4, "late": 8, "foreign": 12}
    assert counts.items() <= log.end.items()


def wait_until_read(protocol: str, port: int) -> None:
    """Until the sockets of a local port hold nothing that arrived."""
    while True:
        lines = [line.split() for line in Path("/proc/net", protocol).read_text().splitlines()[1:]]
        queues = [words[4] for words in lines if words[1].endswith(f":{port:04X}")]
        if all(queue.endswith(":00000000") for queue in queues):
            return


def test_a_broadcast_that_is_lost_fails_its_request(q2pc: Program) -> None:
    """Client 1 loses the prepare of request 2 and the commit of request 3, and answers the former
    once 3 has begun."""
    port = free_port(socket.SOCK_DGRAM)
    with (
        datagram_clients(2, port) as (_, (sound, lossy)),
        q2pc.started(
            *coordinator("broadcast", [port, 2], "--requests", 4, "--wait", 5 * S)
        ) as coordinating,
    ):
        heard: list[tuple[int, int]] = []
        while len(heard) < 7:
            data, source = sound.recvfrom(100)
            again, _ = lossy.recvfrom(100)
            order = unpack(data)
            assert data == again and order.client == EVERY_CLIENT and order.kind == ORDER
            heard.append((order.request, order.phase))
            if order == (ORDER, PREPARE, EVERY_CLIENT, 3):
                lossy.sendto(order._replace(request=2).answered(1), source)
            sound.sendto(order.answered(0), source)
            if (order.request, order.phase) not in ((2, PREPARE), (3, COMMIT)):
                lossy.sendto(order.answered(1), source)
        log = coordinating.log()
    check_order(log)
    # Nothing is sent again.
    assert heard == [(1, 1), (1, 2), (2, 1), (3, 1), (3, 2), (4, 1), (4, 2)]
    assert log.column("failed") == [0, 1, 1, 0] and set(log.column("retries")) == {0}
    assert log.rows[1]["votes_ns"] == 0 and log.rows[2]["votes_ns"] > 0
    assert log.rows[1]["end_ns"] - log.rows[1]["start_ns"] >= 500 * MS
    assert log.rows[2]["end_ns"] - log.rows[2]["votes_ns"] >= 500 * MS
    assert {"completed": 2, "failed": 2, "late": 1, "repeated": 0}.items() <= log.end.items()


def test_an_answer_in_pieces(q2pc: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT_S)
        words = coordinator("tcp", [listener.getsockname()[1]], "--requests", 1)
        with q2pc.started(*words) as coordinating:
            connection, _ = listener.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for phase in (PREPARE, COMMIT):
                    order = unpack(connection.recv(16, socket.MSG_WAITALL))
                    assert order == Message(ORDER, phase, 0, 1)
                    for byte in order.answered()[:-1]:
                        connection.send(bytes([byte]))
                        wait_until_read("tcp", connection.getpeername()[1])
                    repeated = order.answered() if phase == PREPARE else b""
                    connection.send(order.answered()[-1:] + repeated)
                log = coordinating.log()
    assert (log.end["completed"], log.end["late"]) == (1, 1)


def test_an_order_in_pieces_and_strangers(q2pc: Program) -> None:
    with clients(q2pc, "tcp", 1) as ((port,), (client,)):
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n")
            assert stranger.recv(1) == b"", "hung up"
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            order = Message(ORDER, PREPARE, 0, 1)
            for byte in order.pack():
                connection.send(bytes([byte]))
            assert connection.recv(16, socket.MSG_WAITALL) == order.answered()
        assert client.ended().rows == [{"orders": 1, "repeated": 0, "unprepared": 0, "foreign": 1}]


def test_a_client_answers_what_it_has_had_and_counts_it(q2pc: Program) -> None:
    with (
        clients(q2pc, "udp", 1) as ((port,), (client,)),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking,
    ):
        asking.settimeout(WAIT_S)
        asking.connect(("127.0.0.1", port))
        known = [(PREPARE, 2)] * 2 + [(COMMIT, 2)] * 2
        for phase, request in [(COMMIT, 1), *known, (PREPARE, 3), (COMMIT, 4)]:
            order = Message(ORDER, phase, 0, request)
            asking.send(order.pack())
            assert asking.recv(100) == order.answered()
        for foreign in (b"", b"x" * 16, order.answered(), order.pack()[:15], order.pack() + b"x"):
            asking.send(foreign)
        asking.send(order.pack())
        assert asking.recv(100) == order.answered(), "the first answer is to an order"
        assert client.ended().rows == [{"orders": 8, "repeated": 3, "unprepared": 2, "foreign": 5}]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_no_client_there(q2pc: Program, transport: str) -> None:
    port = free_port(socket.SOCK_STREAM)
    with q2pc.started(*coordinator(transport, [port])) as lonely:
        why = "cannot be reached (Connection refused), start q2pc serve there first"
        q2pc.check_refused(lonely.result(), 1, f"client 127.0.0.1:{port} {why}")


def test_a_client_that_hangs_up(q2pc: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with q2pc.started(*coordinator("tcp", [port])) as coordinating:
            listener.accept()[0].close()
            done = coordinating.result()
    q2pc.check_refused(done, 1, f"client 127.0.0.1:{port} ")
    assert "hung up" in done.stderr or "Connection reset" in done.stderr


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run_early(q2pc: Program, end: signal.Signals) -> None:
    with (
        datagram_clients(1) as (ports, (client,)),
        q2pc.started(*coordinator("udp", ports, "--interval", 1800 * S)) as coordinating,
    ):
        for _ in (PREPARE, COMMIT):
            data, source = client.recvfrom(100)
            client.sendto(unpack(data).answered(), source)
        # Of no phase, while none is under way.
        client.sendto(unpack(data)._replace(phase=0).answered(), source)
        wait_until_read("udp", source[1])
        log = coordinating.ended(end)
    assert len(log.rows) == 1
    assert {"early": 1, "completed": 1, "unfinished": 0, "foreign": 1}.items() <= log.end.items()


def test_a_signal_ends_the_wait_for_a_connection(q2pc: Program) -> None:
    """A listener whose backlog is full takes no connection."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        stuck = stack.enter_context(q2pc.started(*coordinator("tcp", [listener.getsockname()[1]])))
        stuck.wait_until_it_can_be_ended()
        log = stuck.ended()
    assert log.rows == []
    assert [log.end[name] for name in ("early", "elapsed_ns", "completed")] == [1, 0, 0]
