"""Compile the kernel modules of a plan's schemes, and put each into an image for its trials."""

from __future__ import annotations

from pathlib import Path

from qjump_mn import guest
from qjump_mn.backends.protocol import Progress
from qjump_mn.guest import Image, images
from qjump_mn.model.plan import Plan
from qjump_mn.model.scheme import Module
from qjump_mn.toolbox import modules
from qjump_mn.toolbox.modules import Compiled


def check(plan: Plan, progress: Progress) -> None:
    """Compile every module of the plan, and print the compiler's warnings.

    Raises UsageError with its errors, and MachineError where modules cannot be compiled.
    """
    if not (found := _of(plan)):
        return
    for module in found:
        module.check("scheme")
    image = guest.prepare(progress)
    for module in found:
        if warnings := _compiled(module, image.kernel, progress).warnings:
            progress(f"the compiler warns of this:\n{warnings}")


def prepare(plan: Plan, image: Image, progress: Progress) -> dict[Module, Image]:
    """Return an image for the trials of each module: ``image`` with the module in it."""
    return {
        module: images.with_archives(
            image, [_compiled(module, image.kernel, progress).archive], progress
        )
        for module in _of(plan)
    }


def _compiled(module: Module, kernel: Path, progress: Progress) -> Compiled:
    return modules.compiled(module.file, module.source, module.path, kernel, progress)


def _of(plan: Plan) -> list[Module]:
    """Return the modules of a plan's arms, also of perturbed runs, each once."""
    arms = (*plan.run.arms, *(arm for arms in plan.run.varied.values() for arm in arms))
    return list(dict.fromkeys(arm.scheme.module for arm in arms if arm.scheme.module))
