"""Start the command line, and end with one sentence and an exit code if it fails.

``python -m qjump_mn.run fig3a`` in a checkout is ``qjump-mn run fig3a`` elsewhere.
"""

from __future__ import annotations

import os
import sys

from qjump_mn.install import environment, launcher
from qjump_mn.process import interrupts, variables

variables.settle(launcher.BREAKS_PYTHON)
if __name__ == "__main__":
    interrupts.end_at_once()
    environment.ensure()

with environment.intact():
    from qjump_mn.cache import scratch
    from qjump_mn.cli import commands, run_command
    from qjump_mn.console import err, replace_unencodable
    from qjump_mn.errors import BEGINS, UsageError, last_words
    from qjump_mn.model import suggestions
    from qjump_mn.programs import user_programs
    from qjump_mn.resolve import loading


def _check_first_word(words: list[str]) -> None:
    """Raise :class:`UsageError` if the first word is neither a command nor an experiment.

    ``run`` would otherwise complain of the words after a misspelt command.
    """
    first = words[0] if words else "-"
    if first.startswith("-") or first in run_command.VERBS or first == loading.ALL:
        return
    experiments = loading.names("experiments")
    if loading.experiment_called(first) not in experiments:
        names = [*run_command.VERBS, *experiments]
        hint = "qjump-mn --help lists the commands, qjump-mn list experiments the experiments"
        raise UsageError(
            f"there is no command or experiment {first!r}: "
            f"{suggestions.nearest(first, names, hint)}"
        )


def main() -> None:
    """Run the command line; an error is one sentence, with a traceback only for ``--debug``."""
    replace_unencodable()
    try:
        interrupts.raise_interrupted()
        scratch.provide()
        words = [argument for argument in sys.argv[1:] if argument != "--debug"]
        if "_QJUMP_MN_COMPLETE" in os.environ:
            user_programs.forbid()
        _check_first_word(words)
        status = commands.parser()(
            run_command.arguments(words),
            standalone_mode=False,
            prog_name="qjump-mn",
            auto_envvar_prefix=commands.VARIABLES,
        )
        sys.exit(status if isinstance(status, int) else 0)
    except BaseException as error:
        if interrupted := interrupts.interruption(error):
            interrupts.end(interrupted)
        if isinstance(error, SystemExit) or "--debug" in sys.argv:
            raise
        sentence, code = environment.damage_behind(error) or last_words(error)
        err.print(f"{BEGINS}{sentence}", markup=False)
        sys.exit(code)


if __name__ == "__main__":
    main()
