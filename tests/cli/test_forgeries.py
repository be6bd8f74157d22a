"""Drawn forgeries of a real run: none gives another verdict under "all is well"."""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qjump_mn import resolve
from qjump_mn.analysis import pipeline
from qjump_mn.cli.bundle import assignment
from qjump_mn.errors import last_words
from qjump_mn.model import identity
from qjump_mn.report import document, drawing
from qjump_mn.report.timelines import page
from qjump_mn.results import contents, manifest, outcome
from qjump_mn.results.directory import RunDirectory
from tests.analysis.test_forged import REAL
from tests.support import nights, synthetic

ARMS = ["idle", "qjump"]
IN_CI = 50
AT_NIGHT = 1000


class Judgement(NamedTuple):
    """What is said of a run: its verdicts by claim, and whether anything is said to be wrong."""

    verdicts: Mapping[str, str]
    is_well: bool


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trials of a real run."""
    plan = resolve.plan("fig3a", "smoke", [], only=ARMS)
    run = synthetic.create(
        tmp_path_factory.mktemp("honest"), plan, options=["--arms", ",".join(ARMS)]
    )
    with tarfile.open(REAL) as archive:
        archive.extractall(run.path)
    shutil.rmtree(run.trial("contended/1").parent)
    for trial in plan.trials():
        synthetic.write_rest(run.asbuilt(trial.name) / "before", trial)
        run.finish(trial.name, synthetic.DONE)
    outcome.write(run.path, synthetic.outcome([]))
    return run.path


@pytest.fixture(autouse=True)
def verdicts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures and reports judge nothing."""
    monkeypatch.setattr(drawing, "draw", lambda *arguments: ())
    monkeypatch.setattr(page, "write", lambda *arguments: None)
    monkeypatch.setattr(document, "write", lambda *arguments: None)


def judged(path: Path) -> Judgement:
    """As ``check`` judges a bundle; what cannot be judged ends with a sentence and an exit code."""
    try:
        told = manifest.read(path)
        problems = [*contents.discrepancies(path, told), *contents.unmarked(path, told)]
        problems += assignment.compared_here(told)[1]
        found = pipeline.analyse(path).outcome
    except Exception as error:
        return Judgement({}, is_well=last_words(error)[1] == 0)
    verdicts = {row.claim: row.verdict for row in found.verdicts}
    # 0 and 1 are verdicts that may be believed.
    return Judgement(verdicts, is_well=not problems and found.exit_code in (0, 1))


def leaves(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each value of a JSON document."""
    items = (
        part.items()
        if isinstance(part, dict)
        else enumerate(part)
        if isinstance(part, list)
        else ()
    )
    for key, value in items:
        yield (*path, key)
        yield from leaves(value, (*path, key))


def others(value: Any) -> st.SearchStrategy[Any]:
    """Values of the same kind."""
    if isinstance(value, bool):
        return st.just(not value)
    if isinstance(value, int):
        return st.sampled_from([0, 1, value + 1, value - 1, 2 * value, -value])
    if isinstance(value, float):
        return st.sampled_from([0.0, value / 2, value * 2, -value])
    if isinstance(value, str):
        return st.sampled_from(
            ["", "1 < 2", "idle", "qjump", "host", "simulator", "real", f"{value}1"]
        )
    if isinstance(value, list):
        return st.sampled_from([[], value[1:], value + value[-1:], value[::-1]])
    return st.sampled_from([{}, None])


def edit_json(path: Path, data: st.DataObject) -> None:
    document = json.loads(path.read_text())
    *parents, last = data.draw(st.sampled_from(list(leaves(document))), "value")
    part = document
    for key in parents:
        part = part[key]
    if data.draw(st.booleans(), "removed"):
        del part[last]
    else:
        part[last] = data.draw(others(part[last]), "new value")
    path.write_text(json.dumps(document))


def edit_text(path: Path, data: st.DataObject) -> None:
    lines = path.read_text().splitlines(keepends=True) or [""]
    index = data.draw(st.integers(0, len(lines) - 1), "line")
    swapped = {"on": "off", "off": "on"}
    line = " ".join(swapped.get(word, word) for word in lines[index].split()) + "\n"
    lines[index] = data.draw(st.sampled_from(["", line, lines[index] * 2]), "new line")
    path.write_text("".join(lines))


def edit(root: Path, data: st.DataObject) -> None:
    """Change a value of the manifest (the plan is in it), of a read-back, a table or the
    verdicts."""
    before = [path for path in root.glob("trials/*/*/asbuilt/before/*") if path.is_file()]
    of_run = [root / manifest.NAME] * len(before)  # as often as all of those
    path = data.draw(st.sampled_from(sorted([*before, *of_run, root / outcome.NAME])), "file")
    (edit_json if path.suffix == ".json" else edit_text)(path, data)


def files(root: Path, data: st.DataObject) -> list[Path]:
    """A file of one trial, and the one of that name in the other trial."""
    found = sorted(path for path in root.glob("trials/*/1/**/*") if path.is_file())
    one = data.draw(st.sampled_from(found), "file")
    arm, *rest = one.relative_to(root / "trials").parts
    return [one, root.joinpath("trials", *(other for other in ARMS if other != arm), *rest)]


def remove(root: Path, data: st.DataObject) -> None:
    files(root, data)[0].unlink()


def duplicate(root: Path, data: st.DataObject) -> None:
    """A file of one trial for that of another, or beside it."""
    one, other = files(root, data)
    other = data.draw(st.sampled_from([other, one.with_name(f"more-{one.name}")]), "copy")
    other.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(one, other)


def swap(root: Path, data: st.DataObject) -> None:
    one, other = files(root, data)
    if other.exists():
        content = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)


def swap_folders(root: Path, data: st.DataObject) -> None:
    """All that one of the trials' folders has for that of the other trial."""
    folder = data.draw(st.sampled_from(["raw", "asbuilt", "asbuilt/before", "."]), "folder")
    one, other = (root / "trials" / arm / "1" / folder for arm in ARMS)
    shutil.move(one, root / "moved")
    shutil.move(other, one)
    shutil.move(root / "moved", other)


def edit_claim(root: Path, data: st.DataObject) -> None:
    """Another predicate for a claim that can be checked with these arms."""
    path = root / manifest.NAME
    document = json.loads(path.read_text())
    claims = document["plan"]["judged"]["claims"]
    names = [name for name, row in judged(root).verdicts.items() if row != "NOT RUN"]
    claim = claims[data.draw(st.sampled_from(names), "claim")]
    old = claim["predicate"]
    claim["predicate"] = data.draw(
        st.sampled_from(
            ["1 < 2", "2 < 1", old.translate(str.maketrans("<>", "><")), f"{old} and 2 < 1"]
        )
    )
    path.write_text(json.dumps(document))


def edit_run(root: Path, data: st.DataObject) -> None:
    """Another duration or other arms."""
    path = root / manifest.NAME
    document = json.loads(path.read_text())
    part = document["plan"]["run"]
    key = data.draw(st.sampled_from(["warmup_ns", "duration_ns", "seeds", "arms"]), "key")
    part[key] = data.draw(others(part[key]), "new value")
    path.write_text(json.dumps(document))


FORGERIES: list[Callable[[Path, st.DataObject], None]] = [
    edit,
    edit_claim,
    edit_run,
    remove,
    duplicate,
    swap,
    swap_folders,
]


def mend(root: Path) -> None:
    """Enter all hashes anew, of the plan too, as somebody does who knows the program."""
    path = root / manifest.NAME
    document = json.loads(path.read_text())
    document["files"] = contents.hashes(root)
    path.write_text(json.dumps(document))
    try:
        told = manifest.read(root)
    except Exception:  # it is refused
        return
    manifest.write(
        root,
        msgspec.structs.replace(
            told, plan_sha256=told.plan.hash, judged_sha256=identity.sha256(told.plan.judged)
        ),
    )
    by_trial = contents.by_trial(told.files)
    for name in told.trials:
        if RunDirectory(root).trial(name).is_dir():
            mark = RunDirectory(root).trial(name) / contents.MARK
            mark.write_text(f"{manifest.digest(by_trial.get(name, {}))}\n")


@pytest.mark.parametrize("count", nights.nightly([IN_CI, AT_NIGHT], but=[IN_CI]))
def test_no_forgery_gives_another_verdict_that_is_believed(count: int, honest: Path) -> None:
    """A forged run is INVALID or LOST, or is said to differ, or has the verdicts of the honest one.

    Outside is what only a rerun finds: other values in what programs printed (raw/), in what
    counters said (asbuilt/began, ended and after) and in trial.json, and a network that is read
    back as planned. Files of these are only removed, duplicated and swapped. Verdicts of a run from
    which a forger took trials or arms, with the command line to fit, are verdicts of that run.
    """
    expected = judged(honest)
    assert expected.is_well and set(expected.verdicts.values()) > {"NOT RUN"}

    @settings(
        max_examples=count,
        derandomize=count == IN_CI,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.data())
    def forged(data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = shutil.copytree(honest, Path(folder, honest.name))
            data.draw(st.sampled_from(FORGERIES), "forgery")(root, data)
            mend(root)
            found = judged(root)
        assert not found.is_well or found.verdicts == expected.verdicts

    forged()
