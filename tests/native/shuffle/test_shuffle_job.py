"""shuffle's jobs on loopback: every copy is made once, in the order of the steps, and what is
logged is what was moved."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations, product
from pathlib import Path

import pytest

from tests.native.shuffle.conftest import Workers
from tests.support.native_programs import Log, Program

MS = 10**6
DISTRIBUTE, SHUFFLE, AGGREGATE, ROUND = range(4)
Row = dict[str, int]


def expected(
    workers: int, rounds: int, distribute: int, shuffle: int, aggregate: int
) -> Counter[tuple[int, ...]]:
    """Every row that a job must log: round, step, source, destination, bytes."""
    everyone = range(1, workers + 1)
    pairs = list(permutations(everyone, 2))
    whole = workers * (distribute + aggregate) + len(pairs) * shuffle
    rows = []
    for number in range(rounds):
        rows += [(number, DISTRIBUTE, 0, node, distribute) for node in everyone if distribute]
        rows += [(number, SHUFFLE, *pair, shuffle) for pair in pairs if shuffle]
        rows += [(number, AGGREGATE, node, 0, aggregate) for node in everyone if aggregate]
        rows += [(number, ROUND, 0, 0, whole)]
    return Counter(rows)


def copies(log: Log, number: int, step: int) -> list[Row]:
    return [row for row in log.rows if row["round"] == number and row["step"] == step]


def options(**values: int | float | str) -> list[str]:
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def job(program: Program, addresses: list[str], **values: int | float) -> Log:
    """The log of a master with these options."""
    return program.log("master", *options(workers=",".join(addresses), **values))


@pytest.mark.parametrize(
    ("count", "distribute", "exchange", "aggregate"),
    [
        (4, 100_000, 50_000, 20_000),
        (1, 1000, 1000, 1000),
        (2, 0, 1, 0),
        (3, 3_000_000, 0, 0),
        (3, 0, 0, 2_000_000),
        (8, 1, 2_000_000, 1),
    ],
)
def test_every_copy_once(
    shuffle: Program, workers: Workers, count: int, distribute: int, exchange: int, aggregate: int
) -> None:
    sizes = {"distribute": distribute, "shuffle": exchange, "aggregate": aggregate}
    log = job(shuffle, workers(count), rounds=3, **sizes)
    columns = ("round", "step", "source", "destination", "bytes")
    rows = Counter(tuple(row[column] for column in columns) for row in log.rows)
    assert rows == expected(count, 3, distribute, exchange, aggregate)
    assert (log.end["rounds"], log.end["early"]) == (3, 0)
    assert log.end["bytes"] == 3 * count * (distribute + (count - 1) * exchange + aggregate)


def test_steps_follow_each_other(shuffle: Program, workers: Workers) -> None:
    compute, jitter = 4 * MS, 0.5
    sizes = {"distribute": 30_000, "shuffle": 40_000, "aggregate": 10_000}
    log = job(shuffle, workers(5), rounds=4, map=compute, jitter=jitter, **sizes)
    least = compute * (1 - jitter)
    rounds = [copies(log, number, ROUND)[0] for number in range(4)]
    assert log.end["from_ns"] <= rounds[0]["start_ns"] and rounds[-1]["end_ns"] <= log.end["to_ns"]
    assert all(row["end_ns"] <= later["start_ns"] for row, later in pairwise(rounds))
    for number, whole in enumerate(rounds):
        steps = (DISTRIBUTE, SHUFFLE, AGGREGATE)
        parts, exchanged, results = (copies(log, number, step) for step in steps)
        for row in parts + exchanged + results:
            assert whole["start_ns"] < row["start_ns"] < row["end_ns"] < whole["end_ns"]
        had_ns = max(row["end_ns"] for row in parts)
        assert min(row["start_ns"] for row in exchanged) >= had_ns + least, "all have computed"
        for result in results:
            mine = [row for row in exchanged if row["destination"] == result["source"]]
            assert result["start_ns"] >= max(row["end_ns"] for row in mine) + least


@pytest.mark.parametrize("parallel", [1, 2, 5])
def test_parallel_copies(shuffle: Program, workers: Workers, parallel: int) -> None:
    log = job(shuffle, workers(7), rounds=3, shuffle=100_000, parallel=parallel)
    most = 0
    for number, node in product(range(3), range(1, 8)):
        mine = [row for row in copies(log, number, SHUFFLE) if row["destination"] == node]
        for at in (row["start_ns"] for row in mine):
            most = max(most, sum(row["start_ns"] <= at < row["end_ns"] for row in mine))
    assert most == parallel


def test_the_order_is_the_seeds(shuffle: Program, workers: Workers) -> None:
    addresses = workers(6)

    def order(seed: int) -> list[list[int]]:
        """The sources of each worker in each round, in the order of their copies."""
        log = job(shuffle, addresses, rounds=2, shuffle=100, parallel=1, seed=seed)
        sources: dict[tuple[int, int], list[int]] = {}
        for row in sorted(log.rows, key=lambda row: row["start_ns"]):
            if row["step"] == SHUFFLE:
                sources.setdefault((row["round"], row["destination"]), []).append(row["source"])
        return [sources[key] for key in sorted(sources)]

    first = order(1)
    assert first == order(1) != order(2)
    assert len(set(map(tuple, first))) > 6, "not all workers and rounds have the same order"


def test_the_duration_ends_it(shuffle: Program, workers: Workers) -> None:
    addresses = workers(2)
    log = job(shuffle, addresses, duration=50 * MS, shuffle=1000, map=MS)
    rounds = [row for row in log.rows if row["step"] == ROUND]
    assert len(rounds) == log.end["rounds"] == len(log.rows) / 3, "each that began is complete"
    assert all(row["end_ns"] < log.end["from_ns"] + 50 * MS for row in rounds[:-1])
    assert rounds[-1]["end_ns"] >= log.end["from_ns"] + 50 * MS
    for duration, most, ran in ((600_000 * MS, 2, 2), (1, 10**9, 1)):
        log = job(shuffle, addresses, duration=duration, rounds=most, shuffle=1)
        assert log.end["rounds"] == ran


def test_parameters_come_first(shuffle: Program, workers: Workers, tmp_path: Path) -> None:
    words: dict[str, int | float | str] = {
        "workers": ",".join(workers(2)), "rounds": 1, "duration": 2, "distribute": 3, "shuffle": 4, "aggregate": 5, "parallel": 6, "map": 7,
        "jitter": 0.125, "transfers": 9, "seed": 2**63 - 1,
    }  # fmt: skip
    done = shuffle.run("master", *options(**words), "--output", str(tmp_path / "log"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    had = {name: str(value) for name, value in words.items()}
    assert Log.read((tmp_path / "log").read_text()).parameters == {"role": "master"} | had
