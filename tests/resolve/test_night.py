"""All figures at the paper's scale: how many seeds they have, and how long they take together."""

from __future__ import annotations

import pytest

from qjump_mn import resolve, session
from qjump_mn.backends import estimate, registry
from qjump_mn.model.plan import Plan
from qjump_mn.resolve import loading

NIGHT_H = 24
"""Without an earlier run the estimate is of slow cores. Long trials took 0.07 to 0.5 of it here."""
ONE_SEED = {
    "fig3a": "the README's first command is to end within three minutes",
    "fig9": "100,000 flows a point, as published: two hours",
    "scale": "10,000 hosts take half an hour a seed, and there is nothing published to compare with",
    "schemes": "compares schemes with each other, and with nothing that was published",
}


def _papers() -> list[Plan]:
    having = (
        name for name in loading.names("experiments") if "paper" in loading.summary(name).presets
    )
    return [resolve.plan(name, "paper", []) for name in having]


def test_every_figure_has_three_seeds_at_the_papers_scale_or_a_reason() -> None:
    fewer = {plan.shown.experiment for plan in _papers() if len(plan.run.seeds) < 3}
    assert fewer == set(ONE_SEED)


def test_all_of_them_are_a_nights_work_on_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "_read", dict)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    seconds = {
        plan.shown.experiment: estimate.run(plan, registry.make(session.backend_name(plan))).seconds
        for plan in _papers()
    }
    assert sum(seconds.values()) <= NIGHT_H * 3600, seconds
