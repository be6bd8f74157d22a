"""Analyse a run directory and print its summary (``python3 -m qjump_mn.analysis RUN_DIR``)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from qjump_mn.install import environment, launcher
from qjump_mn.process import variables

variables.settle(launcher.BREAKS_PYTHON)
if __name__ == "__main__":
    environment.ensure("qjump_mn.analysis")

with environment.intact():
    from qjump_mn.analysis import pipeline, preload, terminal
    from qjump_mn.console import Output, replace_unencodable
    from qjump_mn.errors import BEGINS, last_words
    from qjump_mn.report import pdf
    from qjump_mn.report.figures import shapes
    from qjump_mn.results import reference


def main(arguments: list[str] | None = None) -> int:
    """Analyse a run, and print its summary; return the exit code.

    It is 0, 1, 4 or 5 by the verdicts, 2 if the folder is not a run directory, 3 if no browser can
    print the report or a disk is full.
    """
    options = _parser().parse_args(arguments)
    replace_unencodable()
    try:
        if options.wait and not _wait_for_start():
            return 0
        return _analyse(options)
    except Exception as error:
        if options.debug:
            raise
        sentence, code = environment.damage_behind(error) or last_words(error)
        print(f"{BEGINS}{sentence}", file=sys.stderr)
        return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m qjump_mn.analysis",
        description="Analyse a run directory, print the summary, end with its exit code.",
    )
    parser.add_argument("run", type=Path, help="a run directory, such as results/last")
    parser.add_argument("--pdf", action="store_true", help="print the report into report.pdf, too")
    parser.add_argument(
        "--width", type=float, default=shapes.WIDTH_INCHES, help="the figures' width in inches"
    )
    parser.add_argument("--no-note", action="store_true", help="draw no note below figures")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print verdicts, fidelity and remarks, too"
    )
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")
    parser.add_argument(
        "--reference",
        type=Path,
        metavar="FOLDER",
        help="make the run the reference of its experiment and preset, in this folder",
    )
    parser.add_argument(
        "--wait", action="store_true", help="wait for a line on standard input before the start"
    )
    return parser


def _analyse(options: argparse.Namespace) -> int:
    """Analyse the run, write what the options ask for, and return the exit code of its verdicts."""
    if options.pdf:
        pdf.browser()  # raises at once if there is none
    with shapes.shaped(shapes.Shape(options.width, note=not options.no_note)):
        analysed = pipeline.analyse(options.run)
    if options.pdf:
        pdf.write(analysed.run.path)
    if options.reference:
        manifest, results = analysed.manifest, analysed.results
        print(reference.write(options.reference, manifest, analysed.outcome, results))
    terminal.show(Output(markup=False), analysed, verbose=options.verbose)
    return analysed.outcome.exit_code


def _wait_for_start() -> bool:
    """Load what the analysis needs, then wait for a line; return False at the end of input."""
    preload.load()
    return bool(sys.stdin.readline())


if __name__ == "__main__":
    sys.exit(main())
