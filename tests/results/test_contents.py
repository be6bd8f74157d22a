"""The files of a run: tampered with, interrupted, compared with those of a reference run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from qjump_mn import resolve, session
from qjump_mn.errors import UsageError
from qjump_mn.results import contents, manifest, reference
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import TrialRecord
from tests.support import synthetic
from tests.support.synthetic import DONE, add, discrepancies, results
from tests.support.user_files import Write

PLAN = resolve.plan("fig3a", "smoke", [])


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return synthetic.create(tmp_path / "results", PLAN)


def edit(run: RunDirectory, **entries: Any) -> None:
    """Change the manifest behind the run's back."""
    manifest.write(run.path, replace(run.manifest, **entries))


@pytest.mark.parametrize("part", ["raw", "asbuilt", "trial.json"])
def test_tampering_is_seen(run: RunDirectory, part: str) -> None:
    name = add(run)
    folder = run.trial(name) / part
    victim = next(
        path for path in (folder.rglob("*") if folder.is_dir() else [folder]) if path.is_file()
    )
    victim.write_bytes(victim.read_bytes() + b" ")
    name = victim.relative_to(run.path).as_posix()
    assert discrepancies(run) == [f"{name} is not what the trial left"]
    victim.unlink()
    assert discrepancies(run) == [f"{name} is gone"]


def test_what_nobody_listed_is_seen(run: RunDirectory) -> None:
    """A file in raw/ or asbuilt/, one of another trial, a mark without a record: each is named."""
    name = add(run)
    folders = (run.raw(name), run.asbuilt(name), run.trial("nobody/1"), run.path / "trials")
    paths = [folder / "more.txt" for folder in folders]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert sorted(discrepancies(run)) == [
        "trials/idle/1/asbuilt/more.txt is not listed in the manifest",
        "trials/idle/1/raw/more.txt is not listed in the manifest",
        "trials/more.txt does not belong to a trial of the run",
        "trials/nobody/1/more.txt does not belong to a trial of the run",
    ]
    for path in paths:
        path.unlink()
    run.finish("qjump/1", TrialRecord(status="lost", exit_code=5))
    (run.trial("qjump/1")).mkdir(parents=True)
    (run.trial("qjump/1") / "DONE").write_text(manifest.digest({}))
    assert discrepancies(run) == [
        "trials/qjump/1 has DONE, but the manifest does not say that it is done"
    ]


def test_a_manifest_that_was_edited_is_seen(run: RunDirectory) -> None:
    name = add(run)
    path, listed = f"trials/{name}/raw/ping-h8-h10.ping.txt", run.manifest.files
    edit(run, files={**listed, path: "0" * 64})
    assert discrepancies(run) == [f"{path} is listed with another SHA-256"]
    edit(run, files={key: sha for key, sha in listed.items() if key != path})
    assert discrepancies(run) == [f"{path} is not listed in the manifest"]
    edit(run, files={**listed, "elsewhere": "0" * 64})
    assert discrepancies(run) == ["elsewhere does not belong to a trial of the run"]


@pytest.mark.parametrize("change", ["file and manifest", "DONE"])
def test_done_has_the_digest_of_files_and_manifest(run: RunDirectory, change: str) -> None:
    name = add(run)
    before = results(run)
    if change == "DONE":
        (run.trial(name) / "DONE").write_text("0" * 64 + "\n")
    else:
        path = run.raw(name) / "ping-h8-h10.ping.txt"
        path.write_text(path.read_text().replace("time=0.", "time=0.0"))
        changed = {path.relative_to(run.path).as_posix(): manifest.sha256_of(path)}
        edit(run, files=run.manifest.files | changed)
    assert discrepancies(run) == [f"trials/{name}/DONE has the digest of other files"]
    assert (results(run) == before) == (change == "DONE")


def test_a_run_of_another_plan_is_not_resumed(run: RunDirectory) -> None:
    plan = run.manifest.plan
    longer = replace(plan.run, duration_ns=plan.run.duration_ns + 1)
    edit(run, plan=replace(plan, run=longer))
    with pytest.raises(UsageError, match="its plan is not the one that was run"):
        session.resume(run.path, Console())


def test_an_interrupted_trial_is_no_discrepancy(run: RunDirectory) -> None:
    """Neither one that was not finished, nor one that was lost and is being run again."""
    synthetic.write_trial(run, PLAN.trials()[1])
    assert not discrepancies(run)
    name = add(run)
    run.prepare(name)
    assert run.manifest.trials[name] == DONE
    assert not discrepancies(run)
    told = f"trials/{name} has no DONE, but the manifest says that it is done"
    assert contents.unmarked(run.path, run.manifest) == [told]
    assert results(run).trials == {}


# Reference runs


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return synthetic.make(tmp_path_factory.mktemp("whole"))


def refer(path: Path, run: RunDirectory, **changed: Any) -> Path:
    """A reference of the run, with some of its entries changed."""
    trials = {
        trial.name: reference.TrialReference(trial.hash, results(run).trials[trial.name])
        for trial in run.manifest.plan.trials()
    }
    now = run.manifest
    entries: dict[str, Any] = {"plan_sha256": now.plan_sha256}
    entries |= {"results_sha256": results(run).sha256, "trials": trials, "values": {}}
    path.write_bytes(msgspec.json.encode({**entries, **changed}))
    return path


def clause(run: RunDirectory, path: Path | None, *, valid: bool = True) -> str:
    return reference.compare(run.manifest, results(run), path, valid=valid).clause


def sentence(run: RunDirectory, path: Path | None, *, valid: bool = True) -> str:
    return reference.compare(run.manifest, results(run), path, valid=valid).sentence


def differing(run: RunDirectory, *arms: str) -> dict[str, reference.TrialReference]:
    """The trials of a reference in which those of ``arms`` have other results."""
    digests = results(run).trials
    changed = {
        name: "y" if name.partition("/")[0] in arms else digest for name, digest in digests.items()
    }
    trials = run.manifest.plan.trials()
    return {
        trial.name: reference.TrialReference(trial.hash, changed[trial.name]) for trial in trials
    }


def test_a_run_is_identical_to_its_reference(whole: RunDirectory, tmp_path: Path) -> None:
    path = refer(tmp_path / "reference.json", whole)
    assert (
        sentence(whole, path) == f"identical to the reference run, sha256 {results(whole).sha256}"
    )
    assert clause(whole, path) == "identical to the reference run"


def test_compare_says_which_machine_gave_other_results(whole: RunDirectory, tmp_path: Path) -> None:
    manifest, made = whole.manifest, results(whole)
    other = replace(manifest, machine={**manifest.machine, "locked_image": "0123456789abcdef"})
    path = refer(tmp_path / "reference.json", whole)
    assert (
        reference.compare(other, made, path, valid=True).clause == "identical to the reference run"
    )
    refer(path, whole, trials=differing(whole, "qjump", "idle"))
    images = f"(ours {manifest.machine['image'][:12]}, the reference machine 0123456789ab)"
    assert reference.compare(other, made, path, valid=True) == (
        "the results differ from the reference run's in 2 of 9 trials, idle/1, qjump/1: "
        f"same plan, another machine {images}; results sha256 {made.sha256}",
        "differs from the reference run in 2 of 9 trials (idle/1, qjump/1), with another machine",
    )


def test_the_first_trials_that_differ_are_named(whole: RunDirectory, tmp_path: Path) -> None:
    arms = [arm.name for arm in PLAN.arms]
    path = refer(tmp_path / "reference.json", whole, trials=differing(whole, *arms))
    text = sentence(whole, path)
    names = ", ".join(f"{arm}/1" for arm in arms[:3])
    assert f"in 9 of 9 trials, {names} and 6 more: same plan, same machine" in text


def test_fewer_arms_compare_the_common_trials(whole: RunDirectory, tmp_path: Path) -> None:
    path = refer(tmp_path / "reference.json", whole)
    few = synthetic.make(tmp_path / "few", only=["idle", "qjump"])
    digest = f"results sha256 {results(few).sha256}"
    both = "the 2 trials that both have (this run has 2, the reference run 9)"
    assert few.manifest.plan_sha256 != whole.manifest.plan_sha256
    assert sentence(few, path) == f"the results are those of the reference run in {both}; {digest}"
    assert (
        clause(few, path)
        == "the results are those of the reference run in the 2 trials that both have"
    )
    refer(path, whole, trials=differing(whole, "qjump", "contended"))
    assert sentence(few, path) == (
        f"the results differ from the reference run's in 1 of {both}, qjump/1: "
        f"another plan, same machine; {digest}"
    )
    assert clause(few, path) == (
        "differs from the reference run in 1 of the 2 trials that both have (qjump/1), with the "
        "same machine"
    )
    more = synthetic.make(tmp_path / "more", replicates=2, only=["idle"])
    one = "in the 1 trial that both have (this run has 2, the reference run 9)"
    assert one in sentence(more, refer(path, whole))


def test_what_was_run_otherwise_is_not_compared(whole: RunDirectory, tmp_path: Path) -> None:
    other = synthetic.make(tmp_path / "other", settings=["link.rate=11Mbit"])
    path = refer(tmp_path / "reference.json", other)
    assert sentence(whole, path).startswith(
        "not compared: the plan is not that of the reference run; "
    )
    assert clause(whole, path) == "not compared with the reference run, which had other settings"
    assert sentence(whole, None).startswith(
        "not compared: there is no reference run of preset 'smoke'"
    )
    assert clause(whole, None) == "there is no reference run of preset smoke"


def test_invalid_run_is_never_called_identical(whole: RunDirectory, tmp_path: Path) -> None:
    path, digest = (
        refer(tmp_path / "reference.json", whole),
        f"results sha256 {results(whole).sha256}",
    )
    assert sentence(whole, path, valid=False) == f"not compared: the run is not valid; {digest}"
    assert clause(whole, path, valid=False) == "", (
        "the rest of the summary says that it is not valid"
    )


def test_a_file_that_is_no_reference_is_one_sentence(whole: RunDirectory, tmp_path: Path) -> None:
    path = refer(tmp_path / "reference.json", whole, results_sha256="y")
    with pytest.raises(
        UsageError, match="contradicts itself: its digest is not that of its trials"
    ):
        sentence(whole, path)
    path.write_text("[]")
    with pytest.raises(UsageError, match="is no reference run"):
        sentence(whole, path)


def test_incomplete_or_real_clock_run_is_not_compared(run: RunDirectory, tmp_path: Path) -> None:
    add(run)
    assert sentence(run, None) == "not compared: 8 of 9 trials are missing"
    assert clause(run, None) == "", "the rest of the summary says that it is incomplete"
    real = synthetic.make(tmp_path / "real", clock="real")
    assert sentence(real, None).startswith("not compared: no two runs on the real clock are alike")
    assert clause(real, None) == (
        "not compared with a reference run: no two runs on the real clock are alike"
    )


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_clause_on_an_own_experiment_is_empty(whole: RunDirectory, clock: manifest.Clock) -> None:
    plan = whole.manifest.plan
    own = synthetic.altered(plan, shown={"experiment": "fig3"})
    changed = replace(whole.manifest, plan=own, clock=clock)
    assert reference.compare(changed, results(whole), None, valid=True).clause == ""


def test_reference_is_found_in_a_users_folder(own: Write) -> None:
    assert reference.find("fig3a", "no-such-preset") is None
    path = own("experiments/reference/fig3a-mine.json", "")
    assert reference.find("fig3a", "mine") == path
