"""The packages of what scripts import, and what is said about what they did not find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from qjump_mn.mn.imports import advice, packages


def test_packages_of_a_script_and_of_what_it_imports_from_beside(tmp_path: Path) -> None:
    script = tmp_path / "my.py"
    script.write_text("import os, helper\nfrom mininet.net import Mininet\nimport own.part\n")
    (tmp_path / "helper.py").write_text("def draw():\n    import matplotlib.pyplot as plt\n")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/__init__.py").write_text("from numpy import array\nimport my\n")
    (tmp_path / "unused.py").write_text("import pandas\n")
    assert packages(script) == ("python3-matplotlib", "python3-numpy")


def test_module_beside_the_script_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "my.py").write_text("import termcolor\n")
    (tmp_path / "termcolor.py").write_text("")
    assert packages(tmp_path / "my.py") == ()


def test_advice_names_what_was_not_found() -> None:
    trace = b"Traceback ...\nModuleNotFoundError: No module named 'scapy.all'\n"
    assert advice(trace) == ("the machine has no Python module scapy: try --packages python3-scapy")
    for line in (b"sh: 1: hping3: not found", b"bash: line 1: hping3: command not found"):
        assert advice(b"x\n" + line + b"\ny\n").startswith("the machine has no program hping3:")
    assert advice(b"route not found in table\nall well\n") == ""


def test_advice_knows_what_is_python_2() -> None:
    for text, said in (
        ("print 1\n", "old.py:1 is Python 2: convert it, for example with  2to3 -w old.py"),
        ("try:\n    pass\nexcept OSError, e:\n    pass\n", "old.py:3 is Python 2: "),
        ("if 1:\n    if 1:\n\tprint(1)\n", "old.py:3 mixes tabs and spaces, "),
        ("import urllib2\n", "the module urllib2 is of Python 2: "),
        ("import mininet.examples.vlanhost\n", "Debian's Mininet has no mininet.examples: "),
    ):
        assert advice(printed_by(text)).startswith(said), text
    assert advice(printed_by("x = 3 +\n")) == ""


def printed_by(script: str) -> bytes:
    """Return what Python prints of a script, as if it were in the machine."""
    program = """\
import sys, traceback, types
mininet = sys.modules["mininet"] = types.ModuleType("mininet")
mininet.__path__ = []
try:
    exec(compile(sys.argv[1], "/root/work/old.py", "exec"))
except BaseException:
    traceback.print_exc()
"""
    done = subprocess.run([sys.executable, "-c", program, script], capture_output=True)
    return done.stderr
