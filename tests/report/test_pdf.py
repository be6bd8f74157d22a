"""The report on paper."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from qjump_mn.analysis import pipeline
from qjump_mn.analysis.__main__ import main
from qjump_mn.errors import MachineError
from qjump_mn.report import pdf
from tests.support import synthetic
from tests.support.processes import cli

needs_browser = pytest.mark.skipif(
    not any(map(shutil.which, pdf.BROWSERS)), reason="no Chromium or Chrome to print with"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pipeline.analyse(
        synthetic.make(tmp_path_factory.mktemp("pdf") / "results").path
    ).run.path


def test_on_paper_all_is_unfolded_and_no_link_leads_into_the_run_directory(run: Path) -> None:
    page = (run / "report.html").read_text()
    printed = pdf.for_paper(page)
    # But for samples of what a file beside the page has.
    for_screens = page.count('<details class="screen">')
    assert page.count("<details") - for_screens == printed.count("<details open>") > 5
    assert 'href="trials' in page
    assert re.findall(r'href="([^"]*)"', printed.partition("</style>")[2]) == re.findall(
        r'href="(#[^"]*)"', printed
    )
    assert pdf.for_paper('<a href="https://a.b">x</a>') == '<a href="https://a.b">x</a>'


@needs_browser
def test_report_prints_it(run: Path) -> None:
    verdict = main([str(run)])
    before = {path.name for path in run.iterdir()}
    done = cli("report", run, "--pdf")
    assert done.returncode == verdict, done.stderr
    assert f"report  {run / pdf.NAME}\n" in done.stdout
    assert {path.name for path in run.iterdir()} == before | {pdf.NAME}
    content = (run / pdf.NAME).read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 4
    assert str(run.parent).encode() not in content and b"file:" not in content
    # The next report is another one.
    main([str(run)])
    assert not (run / pdf.NAME).exists()


def test_without_a_browser_that_is_said_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = synthetic.make(tmp_path / "results").path
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([str(run), "--pdf"]) == 3
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith(
        "qjump-mn: a PDF is printed by Chromium or Chrome, and this machine has neither:"
    )
    assert not (run / "report.html").exists()


def test_failing_browser_is_quoted(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chromium").write_text(
        "#!/bin/sh\necho starting >&2\necho no display, no luck >&2\nexit 7\n"
    )
    (tmp_path / "chromium").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    before = sorted(run.iterdir())
    with pytest.raises(
        MachineError, match="chromium did not print the report: no display, no luck"
    ):
        pdf.write(run)
    assert sorted(run.iterdir()) == before
