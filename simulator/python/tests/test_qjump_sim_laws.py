"""Laws of one's own: Reno and DCTCP in Python and in WebAssembly have the outcome of the simulator's own; what fails ends the run in a sentence, or with its exception."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qjump_sim import (
    FIG9,
    Ack,
    Cable,
    Congestion,
    Custom,
    Dctcp,
    Flows,
    Law,
    LeafSpine,
    Outcome,
    Poisson,
    Reno,
    Scenario,
    Scheme,
    Swift,
    Transport,
    Watch,
    ms,
    run,
    us,
)

EXAMPLES = Path(__file__).parents[1] / "examples"
LAWS: dict[str, Any] = runpy.run_path(str(EXAMPLES / "laws.py"))
FABRIC = LeafSpine(4, 6, 2, FIG9.edge, FIG9.uplink)
TRAFFIC = Poisson("search", load=0.7, count=150)
PARAMETERS = "i32 i64 i32 i64 i32 i32 i32 i32 i32"
# A whole module by the body of its callback for ACKs.
MODULE = f'(module (memory (export "memory") 1) (func (export "on_ack") (param {PARAMETERS}) %s))'

TCP = Scheme.named("tcp", FABRIC)
TRANSPORTS: dict[str, Callable[[Congestion], Transport]] = {
    "published": lambda law: replace(TCP.transport, congestion=law),
    "linux": lambda law: replace(Transport.linux(law), min_rto=ms(1), initial_rto=ms(2)),
    "no SACK": lambda law: replace(Transport.linux(law), min_rto=ms(1), sack=False),
    "RACK": lambda law: replace(Transport.linux(law), min_rto=ms(1), rack_tlp=True),
    "timeouts only": lambda law: replace(TCP.transport, congestion=law, dupacks=None, connections=1),
}


def outcome(transport: Transport, scheme: str = "tcp", parts: int = 1, stop: int = ms(40)) -> Outcome:
    whole = replace(Scheme.named(scheme, FABRIC), transport=transport)
    return run(Scenario(FABRIC, whole, TRAFFIC, seed=3, stop=stop, parts=parts))


def same(one: Outcome, other: Outcome) -> None:
    assert one.counters == other.counters
    assert np.array_equal(one.finish, other.finish)
    assert one.end == other.end


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("law", [LAWS["Reno"], (EXAMPLES / "reno.wat").read_bytes()], ids=["Python", "WebAssembly"])
def test_reno_is_the_simulators_to_the_bit(transport: str, law: Any) -> None:
    own = outcome(TRANSPORTS[transport](Reno()))
    assert own.counters["full"].data > 100 and own.counters["timeouts"] > 0
    same(outcome(TRANSPORTS[transport](Custom(law))), own)


@pytest.mark.parametrize("law", [LAWS["Dctcp"], (EXAMPLES / "dctcp.wat").read_bytes()], ids=["Python", "WebAssembly"])
def test_dctcp_is_the_simulators_to_the_bit(law: Any) -> None:
    transport = Scheme.named("dctcp", FABRIC).transport
    assert transport.congestion == Dctcp()
    own = outcome(transport, "dctcp")
    assert own.counters["marked"] > 10_000
    same(outcome(replace(transport, congestion=Custom(law, ecn=True)), "dctcp"), own)


def test_webassembly_has_one_outcome_in_any_number_of_parts() -> None:
    transport = replace(TCP.transport, congestion=Custom.read(EXAMPLES / "reno.wat"))
    whole = outcome(transport)
    for parts in (2, 3):
        same(outcome(transport, parts=parts), whole)


@pytest.mark.parametrize("senders", [8, 60])
def test_swift_is_the_simulators_to_the_bit(senders: int) -> None:
    """Sixty senders have windows below a packet, which are paced."""
    cable = Cable(10_000_000_000, us(2))
    rack = LeafSpine(1, senders + 1, 0, cable, cable)
    flows = Flows([0] * senders, list(range(senders)), [senders] * senders, [10**6] * senders)

    def incast(law: Congestion) -> Outcome:
        transport = replace(TCP.transport, congestion=law)
        scheme = replace(Scheme.named("tcp", rack), transport=transport)
        return run(Scenario(rack, scheme, flows, stop=ms(20)), watch=Watch(flows=True, every_ps=us(100)))

    own, other = incast(Swift(base=us(40), scaling=0)), incast(Custom(lambda: LAWS["Swift"](us(40))))
    assert own.counters["delivered"].data > 15_000
    assert (own.counters["full"].data > 0) is (senders == 60)
    same(other, own)
    assert own.series is not None and other.series is not None
    assert np.array_equal(own.series.queued, other.series.queued)


def test_webassembly_comes_back_from_json_and_python_does_not() -> None:
    text, binary = (EXAMPLES / "reno.wat").read_bytes(), bytes.fromhex(BINARY)
    for module in (text, binary):
        scheme = replace(TCP, transport=replace(TCP.transport, congestion=Custom(module, ecn=True)))
        assert Scheme.from_json(scheme.to_json()) == scheme
    scheme = replace(TCP, transport=Transport.linux(Custom(LAWS["Reno"])))
    assert scheme.transport.congestion == Custom(LAWS["Reno"])
    with pytest.raises(ValueError, match="a law in Python cannot be written as JSON"):
        scheme.to_json()


# A module whose callback for ACKs does nothing, by the binary format of the specification.
BINARY = (
    "0061736d01000000" "010d01" "60097f7e7f7e7f7f7f7f7f00" "03020100" "0503010001"
    "071302066d656d6f72790200066f6e5f61636b0000" "0a040102000b"
)  # fmt: skip


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("(unreachable)", "[0-9]+ ps in on_ack of flow 0: it traps: .*unreachable"),
        ("(loop $forever (br $forever))", "it runs longer than 100000 instructions"),
        ("(f64.store (local.get 0) (f64.const nan))", "it sets its window to NaN: it must be 0 or more"),
        ("(f64.store offset=8 (local.get 0) (f64.const -1))", "it sets its pace to -1: it must be 0 or more"),
        ("(f64.store (i32.const 70000) (f64.const 1))", "it traps: .*out of bounds"),
        ("(i32.store offset=128 (local.get 0) (i32.const 1))", "the law writes memory beside the flow's 128 bytes"),
        ("(drop (memory.grow (i32.const 1)))", "the law writes memory beside the flow's 128 bytes"),
    ],
)
@pytest.mark.parametrize("parts", [1, 2])
def test_a_law_that_fails_ends_the_run_in_a_sentence(body: str, sentence: str, parts: int) -> None:
    law = Custom((MODULE % body).encode())
    with pytest.raises(ValueError, match=f"^congestion: the law of transport 0 failed at .*{sentence}"):
        outcome(replace(TCP.transport, congestion=law), parts=parts)


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("(module", "this is not WebAssembly: "),
        ("(module)", "a law must export its memory"),
        ('(module (memory (export "memory") 1))', "a law must export on_ack"),
        ('(module (memory (export "memory") 1) (func (export "on_ack")))', f"on_ack must have the parameters {PARAMETERS} and no result"),
        ('(module (import "env" "now" (func)) (memory (export "memory") 1))', "a law may import nothing, and this one imports env.now"),
        ('(module (memory (export "memory") 17))', "this is not a law: "),
        (MODULE % "(global.set 0 (i32.const 1))" + "", "this is not "),
        (MODULE[:-1] % "(global.set $all (i32.const 1))" + "(global $all (mut i32) (i32.const 0)))", "the law writes a global, as a compiler does without -O2; all"),
        (MODULE[:-1] % "" + "(func $go) (start $go))", "a law may have no start function"),
        ("(module " + " " * 2**20 + ")", "a law in WebAssembly may have 1048576 bytes, not"),
    ],
)
def test_what_is_no_law_is_refused(module: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=rf"^congestion\.law: {sentence}"):
        Transport.linux(Custom(module.encode()))


def test_neither_python_nor_webassembly_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^congestion\.law: 'reno\.wat' is not a class of laws or the bytes of WebAssembly"):
        Transport.linux(Custom("reno.wat"))  # type: ignore[arg-type]


class Broken(Law):
    def on_ack(self, ack: Ack) -> None:
        if ack.now > us(100):
            raise KeyError("lost")


def test_an_exception_of_a_law_ends_the_run_with_its_traceback() -> None:
    with pytest.raises(KeyError, match="lost") as raised:
        outcome(replace(TCP.transport, congestion=Custom(Broken)))
    assert any(frame.name == "on_ack" for frame in traceback.extract_tb(raised.tb))
    (note,) = raised.value.__notes__
    assert note.startswith("congestion: the law of transport 0 failed at 100") and " in on_ack of flow " in note


def test_a_law_in_python_needs_one_part() -> None:
    with pytest.raises(ValueError, match=r"^parts: a run with a law in Python must have one part: write the law in WebAssembly$"):
        outcome(replace(TCP.transport, congestion=Custom(LAWS["Reno"])), parts=2)


@pytest.mark.parametrize(("make", "kind"), [(dict, AttributeError), (Law, NotImplementedError), (lambda: 1 / 0, ZeroDivisionError)])
def test_what_makes_no_law_is_an_exception(make: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        outcome(replace(TCP.transport, congestion=Custom(make)))
