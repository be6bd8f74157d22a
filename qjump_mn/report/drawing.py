"""Draw the figures of a run into files, with the function that the experiment names."""

from __future__ import annotations

from collections.abc import Sequence

from qjump_mn.report.figures import numbers, registry, style
from qjump_mn.results.directory import RunDirectory, hand_over
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import ArmSummary, Drawing


def draw(run: RunDirectory, manifest: Manifest, arms: Sequence[ArmSummary]) -> tuple[Drawing, ...]:
    """Draw the experiment's figures into ``fig/``; raise :class:`UsageError` if there is no such
    figure."""
    drawings = []
    for figure in registry.find(manifest.plan.shown.figure.plot)(run, manifest, arms):
        files = style.save(figure, run.figures)
        if figure.numbers is not None:
            files["csv"] = run.figures / f"{figure.name}.csv"
            numbers.write(figure.numbers, files["csv"])
        relative = {ending: path.relative_to(run.path).as_posix() for ending, path in files.items()}
        drawings.append(
            Drawing(
                name=figure.name,
                title=figure.title,
                caption=figure.caption,
                files=relative,
                missing_glyphs=style.missing_glyphs(figure),
            )
        )
    hand_over(run.path)
    return tuple(drawings)
