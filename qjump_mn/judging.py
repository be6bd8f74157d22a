"""The analysis of a run in a process of its own, without root's rights.

It needs libraries that nothing under sudo imports, and reads what programs have left, a stranger's too.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from qjump_mn import scratch
from qjump_mn.errors import BEGINS, LostError, command, error_of
from qjump_mn.leash import of_ours
from qjump_mn.results import directory


def judge(run: Path, *, pdf: bool = False, verbose: bool = False) -> int:
    """Judge the run directory and print its summary, with ``verbose`` everything; return the exit
    code. With ``pdf`` a browser prints the report. Raises :class:`LostError` where something killed it,
    and what ended it as an error of its kind."""
    words = ["--pdf"] * pdf + ["--verbose"] * verbose + ["--debug"] * ("--debug" in sys.argv)
    with judging(run, *words, stderr=subprocess.PIPE) as process:
        _, said = process.communicate()
    status, errors = process.returncode, said.decode(errors="replace")
    last = re.search(rf"^{BEGINS}(.*)\Z", errors, re.MULTILINE | re.DOTALL)
    sys.stderr.write(errors[: last.start()] if last else errors)
    if status < 0:
        raise LostError(
            f"{run}: its analysis was ended by {signal.Signals(-status).name}, perhaps for want of memory: "
            f"run  {command('report', run)}"
        )
    if last:
        raise error_of(status)(last[1].strip())
    return status


@contextmanager
def judging(run: Path, *words: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The process that judges the run directory, started with more ``words`` on its command line and Popen's
    ``options``. Under sudo it is the caller's. It ends with this process, and hears no Ctrl-C itself."""
    argv, environment = of_ours("qjump_mn.analysis", str(run), *words)
    with ExitStack() as stack:
        # A notebook's backend is a module that the notebook's Python has.
        environment |= {"MPLBACKEND": "agg", **scratch.for_matplotlib()}
        if caller := directory.caller():
            options |= {"user": caller.user, "group": caller.group, "extra_groups": []}
            # matplotlib wants to write, and root's home is not the caller's.
            home = stack.enter_context(scratch.folder())
            directory.hand_over(Path(home))
            environment |= {"MPLCONFIGDIR": home, "HOME": home}
        process = stack.enter_context(
            subprocess.Popen(argv, start_new_session=True, env=environment, **options)
        )
        try:
            yield process
        except BaseException:
            process.kill()
            raise
