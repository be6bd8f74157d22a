from collections.abc import Callable

from qjump_sim.network import Cable, Graph, LeafSpine, Topology, Tree
from qjump_sim.outcome import Counters, Outcome, Port, Regions
from qjump_sim.scenario import Scenario
from qjump_sim.scheme import Congestion, Scheme, Transport
from qjump_sim.units import Bytes
from qjump_sim.watch import End, Watch

__all__ = [
    "fat_tree",
    "fig9",
    "headroom",
    "host_numbers",
    "laws",
    "linux",
    "phases",
    "queues",
    "read_flows",
    "regions",
    "run",
    "scheme",
    "scheme_from_json",
    "scheme_to_json",
    "units",
]

# Columns are the bytes of int64 arrays.
def run(
    scenario: Scenario, watch: Watch | None, progress: Callable[[int, int, int, float], None] | None
) -> tuple[
    list[bytes],
    tuple[int, list[int]],
    Counters,
    list[tuple[int, int, int, int]],
    int,
    list[tuple[list[bytes], list[int]]],
    list[Port],
    tuple[tuple[list[tuple[End, End]], list[bytes]] | None, list[bytes] | None, list[bytes] | None],
]: ...
def fig9() -> LeafSpine: ...
def host_numbers(tree: Tree | Graph) -> dict[str, int]: ...
def fat_tree(
    k: int, edge: Cable, trunk: Cable
) -> tuple[list[str], list[str], list[tuple[str, str, Cable]]]: ...
def queues() -> list[tuple[str, str]]: ...
def laws() -> list[tuple[str, str]]: ...
def units() -> dict[str, dict[str, str]]: ...
def scheme(name: str, topology: Topology) -> Scheme: ...
def scheme_to_json(scheme: Scheme) -> str: ...
def scheme_from_json(text: str) -> Scheme: ...
def linux(congestion: Congestion) -> Transport: ...
def headroom(cable: Cable, packet: int | Bytes) -> int: ...
def read_flows(text: str) -> list[bytes]: ...
def phases(senders: int, epoch: int, seed: int) -> list[int]: ...
def regions(outcome: Outcome, fabric: LeafSpine) -> Regions: ...
