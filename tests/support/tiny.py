"""Experiments of a ping that the simulator runs in a second, with a preset that no experiment of
ours has."""

from __future__ import annotations

from pathlib import Path

PRESET = "tiny"


def write(
    folder: Path,
    name: str,
    *,
    limit_ms: float = 1.0,
    replicates: int = 2,
    backend: str = "simulator",
) -> Path:
    """Write the experiment ``name`` below ``folder``; its claim is that the ping takes less than
    ``limit_ms``."""
    path = folder / "experiments" / f"{name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"""
title = "A ping"
reproduces = "none: a test"
question = "How long does a ping take?"
topology = "fanin"
backends = ["{backend}"]
warmup = "1ms"
duration = "20ms"
link = {{ rate = "10Gbit", buffer = "1522kB" }}
arms.one = {{ label = "one", workloads = ["ping"], scheme = "priorities" }}
figure = {{ plot = "latency_cdf", workload = "ping", arms = ["one"] }}
workloads.ping = {{ program = "ping", level = 7, flows = ["h1>h11"], interval = "10us" }}

[claims.fast]
statement = "A ping is fast"
source = "a test"
predicate = "one.ping.p50_ms < {limit_ms}"
shows = "one.ping.p50_ms"

[presets.{PRESET}]
about = "a second"
replicates = {replicates}
"""
    )
    return path
