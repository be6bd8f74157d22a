"""Simulate one trial: ``python -m qjump_mn.simulation OUT < trial.json``.

Without OUT, read a plan and check that the simulator can run its trials.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from qjump_mn.errors import QJumpError, last_words, user_program_line
from qjump_mn.model.plan import Plan, Trial
from qjump_mn.programs import registry
from qjump_mn.simulation import kept_files
from qjump_mn.simulation.progress_messages import show


def main() -> int:
    """Run a trial or check a plan. Print an error as one sentence on standard error, and return its
    exit code.
    """
    text = sys.stdin.buffer.read()
    try:
        if len(sys.argv) == 1:
            kept_files.check(msgspec.json.decode(text, type=Plan, dec_hook=registry.decode))
            return 0
        trial = msgspec.json.decode(text, type=Trial, dec_hook=registry.decode)
        for name, content in kept_files.simulate(trial, show).items():
            path = Path(sys.argv[1], name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except Exception as error:
        if not isinstance(error, QJumpError) and not user_program_line(error):
            raise
        sentence, code = last_words(error)
        print(sentence, file=sys.stderr)
        return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
