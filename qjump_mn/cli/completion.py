"""What a shell may complete words to: names of experiments, and what the experiment on the command line
has."""

from __future__ import annotations

import typer

from qjump_mn.errors import UsageError
from qjump_mn.model import loading


def experiments(incomplete: str) -> list[str]:
    """Experiments, and the word for all of them."""
    return _beginning(incomplete, [*loading.names("experiments"), loading.ALL])


def presets(ctx: typer.Context, incomplete: str) -> list[str]:
    """The presets of the experiment that stands there already, or else of all experiments."""
    named = _named(ctx)
    known: dict[str, None] = {}
    for name in [named] if named else loading.names("experiments"):
        try:
            known |= dict.fromkeys(loading.presets(name))
        except UsageError:  # a broken file has nothing to offer
            continue
    return _beginning(incomplete, list(known))


def arms(ctx: typer.Context, incomplete: str) -> list[str]:
    """The arms of the experiment that stands there already; of a list with commas the last one."""
    named, (before, comma, last) = _named(ctx), incomplete.rpartition(",")
    if not named:
        return []
    try:
        from qjump_mn.model import resolve

        plan = resolve.plan(named, ctx.params.get("preset") or loading.usual_preset(named), [])
    except UsageError:
        return []
    series = dict.fromkeys(arm.series or arm.name for arm in plan.arms)
    taken = before.split(",")
    return [before + comma + name for name in _beginning(last, list(series)) if name not in taken]


def schemes(incomplete: str) -> list[str]:
    """Schemes; of a list with commas the last one."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _beginning(last, loading.names("schemes"))]


def backends(incomplete: str) -> list[str]:
    """Backends, those of other packages too."""
    from qjump_mn.backends import registry

    return _beginning(incomplete, registry.names())


def lists(incomplete: str) -> list[str]:
    """What ``list`` can show."""
    from qjump_mn.cli import listing

    return _beginning(incomplete, list(listing.LISTS))


def kinds(incomplete: str) -> list[str]:
    """What ``new`` can make."""
    from qjump_mn.cli import scaffold

    return _beginning(incomplete, list(scaffold.KINDS))


def _named(ctx: typer.Context) -> str:
    """The experiment on the command line, by its own name; empty where there is none."""
    known = loading.names("experiments")
    # Behind an option that has no value yet, click does not say which argument a word is.
    words = (str(ctx.params.get("experiment") or ""), *ctx.args)
    return next((name for word in words if (name := loading.experiment_called(word)) in known), "")


def _beginning(incomplete: str, known: list[str]) -> list[str]:
    return [name for name in known if name.startswith(incomplete)]
