"""Complete words in a shell: names of experiments, and the presets, arms and schemes of one."""

from __future__ import annotations

import typer

from qjump_mn.errors import UsageError
from qjump_mn.resolve import loading


def experiments(incomplete: str) -> list[str]:
    """Complete an experiment's name, or the word for all of them."""
    return _matches(incomplete, [*loading.names("experiments"), loading.ALL])


def presets(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a preset of the experiment on the command line; without one, of any experiment."""
    experiment = _experiment(ctx)
    names: dict[str, None] = {}
    for name in [experiment] if experiment else loading.names("experiments"):
        try:
            names |= dict.fromkeys(loading.presets(name))
        except UsageError:  # a broken file has no presets to offer
            continue
    return _matches(incomplete, list(names))


def arms(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the last arm in a list with commas, from those of the experiment on the command
    line."""
    experiment, (before, comma, last) = _experiment(ctx), incomplete.rpartition(",")
    if not experiment:
        return []
    try:
        from qjump_mn import resolve

        plan = resolve.plan(
            experiment, ctx.params.get("preset") or loading.usual_preset(experiment), []
        )
    except UsageError:
        return []
    series = dict.fromkeys(arm.series or arm.name for arm in plan.arms)
    listed = before.split(",")
    return [before + comma + name for name in _matches(last, list(series)) if name not in listed]


def schemes(incomplete: str) -> list[str]:
    """Complete the last scheme in a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _matches(last, loading.names("schemes"))]


def backends(incomplete: str) -> list[str]:
    """Complete a backend's name, including those of other packages."""
    from qjump_mn.backends import registry

    return _matches(incomplete, registry.names())


def lists(incomplete: str) -> list[str]:
    """Complete the argument of ``list``."""
    from qjump_mn.cli import listing

    return _matches(incomplete, list(listing.LISTS))


def kinds(incomplete: str) -> list[str]:
    """Complete the kind of file that ``new`` writes."""
    from qjump_mn.cli import scaffold

    return _matches(incomplete, list(scaffold.KINDS))


def _experiment(ctx: typer.Context) -> str:
    """Return the experiment on the command line, with aliases resolved; "" if there is none."""
    experiments = loading.names("experiments")
    # After an option without a value, click does not say which argument a word is.
    words = (str(ctx.params.get("experiment") or ""), *ctx.args)
    return next(
        (name for word in words if (name := loading.experiment_called(word)) in experiments), ""
    )


def _matches(incomplete: str, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
