"""What tests of qjau --cgroup share: a client to send, and the words that start it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native.app_util import network as networks
from tests.native.app_util.network import ACK, PORT, SYN, THERE, Network
from tests.native.app_util.qjau import PROGRAMS, AppUtil, Words, run

CLIENT = [THERE, str(PORT)]


def sent_by(network: Network, *argv: str | Path, user: int | None = None) -> networks.Capture:
    """What a client sends until it has ended well."""
    with network.serving(), network.captured() as packets:
        result = run(network.here(*argv), user=user)
        if result.returncode == 77:
            pytest.skip("this kernel allows no io_uring")
        assert result.returncode == 0, result.stderr
    assert len(packets.tcp(SYN)) == 1 and sum(packets.tcp(ACK).values()) >= 3
    return packets


def under(app: AppUtil, *argv: str | Path, priority: int = 6) -> Words:
    return [app.command, "-p", str(priority), "--cgroup", *argv]


def compiled(app: AppUtil, name: str, *options: str) -> Path:
    return app.compile(f"{name}{''.join(options)}", (PROGRAMS / f"{name}.c").read_text(), *options)
