"""The packages of what scripts import, and what is said about what they did not find."""

from __future__ import annotations

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
