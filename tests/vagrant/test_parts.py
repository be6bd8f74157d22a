"""What the trial of Vagrant takes from this machine, and how it tells of what was done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vagrant import box, host, trial


def test_the_boxs_pip_has_the_index_of_this_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = tmp_path / "pip"
    pip.write_text(
        "#!/bin/sh\ncat <<'END'\n"
        ":env:.cert='/srv/authorities.crt'\n"
        "global.index-url='https://index.example/simple?a=b'\n"
        r"global.extra-index-url='\nhttps://one.example\nhttps://two.example'"
        "\nglobal.find-links='/srv/wheels'\nEND\n"
    )
    pip.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert box.pip_settings() == (
        "[global]\n"
        "cert = /etc/ssl/certs/ca-certificates.crt\n"
        "extra-index-url = https://one.example https://two.example\n"
        "index-url = https://index.example/simple?a=b\n"
    )


class _Played(host.Host):
    def run(self, command: str, folder: str = "/", told: object = None) -> int:
        assert callable(told)
        for line in ("\x1b[0mProgress: 1%\rProgress: 100%\r\x1b[KDone.  ", "", "last"):
            told(line)
        return 3


def test_a_step_is_told_without_what_was_drawn_over() -> None:
    told: list[str] = []
    step = trial._step(_Played(0), "vagrant up", told.append)
    assert step.lines == told == ["Done.", "last"]
    assert trial.text([step], 0.5).endswith("\n| `vagrant up` | 0 s, exit code 3 |")
