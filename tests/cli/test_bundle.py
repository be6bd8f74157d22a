"""``bundle`` and ``check``: written alike each time, read as a stranger's file, and checked for what it is."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from qjump_mn.analysis import pipeline, published_comparison
from qjump_mn.cli.bundle import archive, assignment, checking, judge, writing
from qjump_mn.cli.bundle.archive import BundleError
from qjump_mn.cli.run_command import options_of
from qjump_mn.errors import UsageError
from qjump_mn.install import provenance
from qjump_mn.model import identity
from qjump_mn.programs import registry, user_programs
from qjump_mn.resolve import checks
from qjump_mn.results import contents, manifest, outcome, user_files
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest, TrialRecord
from tests.support import synthetic
from tests.support.processes import execute
from tests.support.screen import Screen

FILES: dict[str, Path | bytes] = {
    "manifest.json": b'{"schema": 3}\n' * 20,
    "trials/idle/1/raw/ping.txt": b"64 bytes from 10.0.0.10: icmp_seq=1 ttl=64 time=8.77 ms\n" * 50,
    "trials/idle/1/DONE": b"0123456789abcdef\n",
    "own/experiments/mine.toml": b'title = "mine"\n',
}
MUTATED = 10_000
AGAIN = checking.Rerun(wanted=True)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run of two arms that was judged."""
    run = synthetic.make(tmp_path_factory.mktemp("judged"), only=["idle", "contended"])
    pipeline.analyse(run.path)
    return run


@pytest.fixture
def run(judged: RunDirectory, tmp_path: Path) -> RunDirectory:
    """A copy of it that may be changed."""
    return RunDirectory(shutil.copytree(judged.path, tmp_path / judged.path.name))


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A small one of made-up files."""
    archive.write(tmp_path / "small.zip", FILES)
    return tmp_path / "small.zip"


def unpacked(path: Path, folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    archive.unpack(path, folder)
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def checked(
    path: Path, assigned: Path | None = None, rerun: checking.Rerun = checking.NO_RERUN
) -> tuple[int, str]:
    out = Screen(400)
    made = checking.check(path, out, assigned=assigned, rerun=rerun)
    if made.error:
        raise made.error
    return made.code, out.text


def test_bundle_is_always_the_same_file(run: RunDirectory, tmp_path: Path) -> None:
    one, other = (writing.write(run.path, tmp_path / name) for name in ("one.zip", "other.zip"))
    assert one.read_bytes() == other.read_bytes()
    there = unpacked(one, tmp_path / "there")
    assert {"manifest.json", "verdicts.json", "report.html"} <= there.keys()
    assert not [name for name in there if "/data/" in name]
    assert there["trials/idle/1/DONE"] == (run.trial("idle/1") / "DONE").read_bytes()
    sums = subprocess.run(
        ["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=tmp_path / "there", check=False
    )
    assert sums.returncode == 0


def test_what_was_written_and_the_drawing_go_with_it(run: RunDirectory, tmp_path: Path) -> None:
    (run.path / "notes.md").write_text("## Critique\n\nOnly one seed.\n")
    (run.path / "Photo.JPG").write_bytes(b"of the lab")
    there = unpacked(writing.write(run.path, tmp_path / "one.zip"), tmp_path / "there")
    assert there["notes.md"] == b"## Critique\n\nOnly one seed.\n"
    assert there["Photo.JPG"] == b"of the lab"
    assert there["fig/network.svg"].startswith(b"<svg ")


def test_a_users_own_files_go_with_their_run_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: RunDirectory
) -> None:
    mine, ping = tmp_path / "experiments/fig3a.toml", tmp_path / "programs/ping"
    published = f"plots/published/{run.manifest.plan.shown.figure.published[0]}.toml"
    for path in (
        mine,
        tmp_path / published,
        ping / "program.py",
        ping / "guest/part.py",
        ping / "__pycache__/program.pyc",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# qjump_mn: mine\n")
    monkeypatch.setenv("QJUMP_MN_PATH", str(tmp_path))
    # A folder of ours' name is refused where it is used, once for the process: not for the tests after this.
    for name, nothing in (("problems", {}), ("_tried", set())):
        monkeypatch.setattr(registry._PROGRAMS, name, nothing)
    monkeypatch.setattr(user_programs, "folders", user_programs.folders.__wrapped__)
    user_files.keep(run.manifest.plan, run.path)
    mine.write_text("# changed\n")
    there = unpacked(writing.write(run.path, tmp_path / "one.zip"), tmp_path / "there")
    assert there["own/experiments/fig3a.toml"] == b"# qjump_mn: mine\n"
    assert sorted(name for name in there if name.startswith("own/")) == [
        "own/experiments/fig3a.toml",
        f"own/{published}",
        "own/programs/ping/guest/part.py",
        "own/programs/ping/program.py",
    ]


def test_changed_or_unjudged_run_is_not_bundled(run: RunDirectory, tmp_path: Path) -> None:
    (run.path / outcome.NAME).rename(tmp_path / outcome.NAME)
    with pytest.raises(UsageError, match=r"has no verdicts.json: run  qjump-mn report"):
        writing.write(run.path, tmp_path / "one.zip")
    (tmp_path / outcome.NAME).rename(run.path / outcome.NAME)
    (run.raw("idle/1") / "more.txt").write_text("more")
    with pytest.raises(
        UsageError, match=r"not as its trials left it: trials/idle/1/raw/more.txt is not li"
    ):
        writing.write(run.path, tmp_path / "one.zip")
    assert not (tmp_path / "one.zip").exists()


def test_run_that_lacks_trials_is_not_well(run: RunDirectory, tmp_path: Path) -> None:
    """Neither one from which they were taken, nor one that never ran them."""
    (run.trial("idle/1") / contents.MARK).unlink()
    with pytest.raises(
        UsageError, match=r"trials/idle/1 has no DONE, .*: run  qjump-mn resume .*  first$"
    ):
        writing.write(run.path, tmp_path / "one.zip")
    manifests = run.path / "manifest.json"
    told = json.loads(manifests.read_text())
    del told["trials"]["idle/1"]
    told["files"] = {path: sha for path, sha in told["files"].items() if "idle/1" not in path}
    manifests.write_text(json.dumps(told))
    pipeline.analyse(run.path)
    code, text = checked(writing.write(run.path, tmp_path / "two.zip"))
    assert code > 0 and re.search(r"fidelity: complete: [0-9]+ of [0-9]+ trials done\n", text), text
    assert text.splitlines()[-1] == "not all is well: see above"


def test_what_is_handed_in_is_judged_again(run: RunDirectory, tmp_path: Path) -> None:
    code, text = checked(writing.write(run.path, tmp_path / "one.zip"))
    assert f"files: all {len(run.manifest.files)} are those of the manifest\n" in text
    assert "verdicts: judged again from the raw files, they are the bundle's\n" in text
    assert (code, text.splitlines()[-1]) == (0, "nothing found; not proved: use --rerun")


def test_forged_raw_files_give_other_verdicts(run: RunDirectory, tmp_path: Path) -> None:
    for file in run.raw("contended/1").glob("ping*"):
        file.write_bytes((run.raw("idle/1") / file.name).read_bytes())
    run.finish("contended/1", TrialRecord(status="done", exit_code=0))
    code, text = checked(writing.write(run.path, tmp_path / "one.zip"))
    assert (
        "verdicts: contended is INVALID, the bundle says " in text
        or "NOT REPRODUCED, the bundle" in text
    )
    assert "verdicts: the measures of the bundle are not those of its raw files\n" in text
    assert (code > 0, text.splitlines()[-1]) == (True, "not all is well: see above")


def test_another_plan_than_assigned_is_told(run: RunDirectory, tmp_path: Path) -> None:
    path, assigned = writing.write(run.path, tmp_path / "one.zip"), tmp_path / "assigned.toml"
    asked = 'experiment = "fig3a"\npreset = "smoke"\narms = ["idle", "contended"]\n'

    def differences(more: str, *options: str) -> list[str]:
        assigned.write_text(asked + more)
        told = manifest.read(run.path)
        told = replace(told, argv=(*told.argv, *options))
        return assignment.differences(assignment.read(assigned), told, options_of(told.argv))

    assert differences("") == []
    other = 'settings = ["workloads.ping.payload=57B"]'
    assert "arms.idle.workloads.ping.payload_bytes is 56, assigned is 57" in differences(other)
    # Freely chosen, and what the command line says was chosen is what was run.
    free = other + '\nfree = ["workloads.ping.payload", "seed"]'
    assert differences(free, "-s", "workloads.ping.payload=56B", "--seed", "1") == []
    assert differences(free, "-s", "workloads.ping.payload=58B") != []
    assert differences("", "-s", "workloads.ping.payload=58B") == []  # what was run counts
    assert differences('free = ["seed"]', "--seed", "2") == ["seeds is [1], assigned is [2]"]
    assigned.write_text(asked + other)
    code, text = checked(path, assigned)
    assert code == 1
    assert "plan: arms.idle.workloads.ping.payload_bytes is 56, assigned is 57\n" in text


def test_each_student_has_the_seed_of_their_name(run: RunDirectory, tmp_path: Path) -> None:
    assigned = tmp_path / "assigned.toml"
    assigned.write_text(
        'experiment = "fig3a"\npreset = "smoke"\narms = ["idle", "contended"]\nseed = "student"\n'
    )
    course = assignment.read(assigned)
    assert assignment.plan(course).run.seeds == (1,)  # the assignment alone makes a plan

    def differences(seed: int, *options: str) -> list[str]:
        told = manifest.read(run.path)
        ours = replace(told.plan, run=replace(told.plan.run, seeds=(seed,)))
        argv = ("qjump-mn", "run", "fig3a", *options)
        return assignment.differences(course, replace(told, plan=ours), options_of(argv))

    alice = checks.student_seed("Alice  Example")
    assert alice == checks.student_seed(" alice example") != checks.student_seed("bob")
    assert differences(alice, "--student", "Alice Example") == []
    assert differences(alice, "--student", "bob") == [
        f"seeds is [{alice}], assigned is [{checks.student_seed('bob')}]"
    ]
    assert (
        differences(1)
        == differences(1, "--seed", "1")
        == ["it was run without --student, which gives each student another seed"]
    )


def with_predicate(told: Manifest, predicate: str) -> Manifest:
    """A manifest whose claim on contention has another predicate, and the hash to fit."""
    claims = told.plan.judged.claims
    other = replace(claims["contended"], predicate=predicate)
    judged = replace(told.plan.judged, claims={**claims, "contended": other})
    plan = replace(told.plan, judged=judged)
    return replace(told, plan=plan, judged_sha256=identity.sha256(judged))


def test_weakened_predicate_differs_from_the_experiment(run: RunDirectory, tmp_path: Path) -> None:
    always = "contended.ping.p50_ms > 0"
    manifest.write(run.path, with_predicate(run.manifest, always))
    pipeline.analyse(run.path)
    code, text = checked(writing.write(run.path, tmp_path / "one.zip"))
    assert (
        "plan: differs from this checkout's experiment fig3a: claims.contended.predicate is "
        f'"{always}", there it is ' in text
    )
    assert (code, text.splitlines()[-1]) == (1, "not all is well: see above")


def test_a_plan_is_compared_with_this_checkouts_experiment(judged: RunDirectory) -> None:
    told = judged.manifest
    where = "differs from this checkout's experiment fig3a"

    def of_plan(**parts: object) -> list[str]:
        plan = replace(told.plan, **parts)
        return assignment.compared_here(replace(told, plan=plan))[1]

    ran = told.plan.run
    assert of_plan() == []
    assert of_plan(run=replace(ran, duration_ns=1)) == [
        f"{where}: duration_ns is 1, there it is {ran.duration_ns}"
    ]
    (fewer,) = of_plan(run=replace(ran, arms=ran.arms[:1]))
    assert fewer.startswith(f"{where}: arms.contended is nothing, there it is ")
    (other,) = of_plan(shown=replace(told.plan.shown, preset="no"))
    no_plan = (
        "for which the run's command line makes no plan: experiment 'fig3a' has no preset 'no': "
    )
    assert other.startswith(f"{where}, {no_plan}")
    asked = replace(told, argv=(*told.argv, "-s", "workloads.ping.payload=58B"))
    assert (
        f"{where}: arms.idle.workloads.ping.payload_bytes is 56, there it is 58"
        in (assignment.compared_here(asked)[1])
    )


def test_a_plan_of_an_experiment_that_is_not_here_is_not_compared(judged: RunDirectory) -> None:
    told = judged.manifest
    elsewhere = replace(told, plan=synthetic.altered(told.plan, shown={"experiment": "mine"}))
    assert assignment.compared_here(elsewhere) == (
        "not compared: this checkout has no experiment mine",
        [],
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("experiment", "assignment .*: Expected '='"),
        ("preset = 'smoke'", "missing required field `experiment`"),
        ("experiment = 'fig3a'\nfre = ['seed']",
         r"unknown field `fre`: did you mean 'free'.*assigned.toml, line 2"),
        ("experiment = 'fig3a'\nsettings = 'x'", "assignment .*: settings: "),
        ("experiment = 'fig3a'\npreset = 'smoek'", "did you mean 'smoke'"),
        ("experiment = 'fig3a'\npreset = '10g'\nbackend = 'guest'", "is not for the guest"),
        ("experiment = 'fig3a'\npreset = 'smoke'\nschemes = ['ecn']\narms = ['idle']",
         "--arms leaves out the arm that --scheme ecn adds"),
        ("experiment = 'fig3a'\npreset = 'smoke'\nfree = ['sed']",
         "free: experiment 'fig3a' has no setting 'sed'"),
    ],
)  # fmt: skip
def test_an_assignment_that_makes_no_plan_is_refused(
    judged: RunDirectory, tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "assigned.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=told):
        assignment.differences(assignment.read(path), judged.manifest, {})


def evil(path: Path, *entries: tuple[str, bytes], mode: int = stat.S_IFREG | 0o644) -> Path:
    """A zip file with these entries, and sums that agree."""
    sums = "".join(f"{sha256(content).hexdigest()}  {name}\n" for name, content in entries)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in (*entries, (contents.SUMS, sums.encode())):
            entry = zipfile.ZipInfo("x")
            entry.filename, entry.external_attr, entry.compress_type = (
                name,
                mode << 16,
                zipfile.ZIP_DEFLATED,
            )
            made.writestr(entry, content)
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["../out"], "is not the name of a file in a bundle"),
        (["trials/../../out"], "is not the name of a file in a bundle"),
        (["/etc/out"], "is not the name of a file in a bundle"),
        (["trials//out"], "is not the name of a file in a bundle"),
        (["trials\\..\\out"], "is not the name of a file in a bundle"),
        (["trials/out/"], "is not the name of a file in a bundle"),
        (["trials/\u202eout"], "is not the name of a file in a bundle"),
        (["trials/" + "x" * 300], "is not the name of a file in a bundle"),
        (["other.txt"], "is not the name of a file in a bundle"),
        (["trials/a", "trials/a"], "has 'trials/a' twice"),
        (["trials/a", "trials/A"], "has 'trials/A' twice"),
        (["trials/a", "trials/a/b"], "'trials/a' is both a file and a folder"),
    ],
)
def test_names_that_no_bundle_has_are_refused(tmp_path: Path, names: list[str], told: str) -> None:
    path = evil(tmp_path / "evil.zip", *((name, b"x") for name in names))
    (tmp_path / "inside").mkdir()
    with pytest.raises(BundleError) as raised:
        unpacked(path, tmp_path / "inside/there")
    assert told in str(raised.value)
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["evil.zip", "inside", "there"]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
def test_what_is_no_plain_file_is_refused(tmp_path: Path, kind: int) -> None:
    path = evil(tmp_path / "evil.zip", ("trials/a", b"/etc/passwd"), mode=kind | 0o777)
    with pytest.raises(BundleError, match="'trials/a' is not a plain file"):
        unpacked(path, tmp_path / "there")


def test_too_large_a_bundle_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = evil(tmp_path / "bomb.zip", *((f"trials/{index}", bytes(10**6)) for index in range(5)))
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(archive, "MAX_BYTES", 4 << 20)
    with pytest.raises(BundleError, match="would unpack to 4 MiB; a bundle has 4 at most"):
        unpacked(path, tmp_path / "there")
    monkeypatch.setattr(archive, "MAX_FILES", 5)
    with pytest.raises(BundleError, match="has 6 files; a bundle has 5 at most"):
        unpacked(path, tmp_path / "more")


def test_no_file_of_the_run_is_written_over(run: RunDirectory) -> None:
    before = (run.path / "manifest.json").read_bytes()
    with pytest.raises(UsageError, match="is inside the run: name a file elsewhere"):
        writing.write(run.path, run.path / "manifest.json")
    assert (run.path / "manifest.json").read_bytes() == before


def test_a_damaged_file_is_one_sentence_of_the_analysis(run: RunDirectory) -> None:
    counters = run.raw("idle/1") / "counters.json"
    counters.write_bytes(b'{"truncated": ')
    command = [sys.executable, "-m", "qjump_mn.analysis", str(run.path)]
    done = execute(command)
    assert done.returncode in (4, 5) and "Traceback" not in done.stderr, done.stderr


def test_report_in_a_bundle_has_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_READ_BYTES", 1 << 20)
    path = evil(tmp_path / "long.zip", ("report.html", bytes(2 << 20)))
    with pytest.raises(
        BundleError, match=r"'report\.html' would have 2 MiB; such a file has 1 at most"
    ):
        unpacked(path, tmp_path / "there")


def test_a_file_that_is_longer_than_it_says_is_cut(tmp_path: Path) -> None:
    path = evil(tmp_path / "liar.zip", ("trials/a", bytes(10**6)))
    content = path.read_bytes()
    size = (10**6).to_bytes(4, "little")
    assert content.count(size) == 2
    path.write_bytes(content.replace(size, (10).to_bytes(4, "little")))
    with pytest.raises(BundleError):
        unpacked(path, tmp_path / "there")
    assert (
        sum(file.stat().st_size for file in (tmp_path / "there").rglob("*") if file.is_file()) <= 10
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda there: there.pop(contents.SUMS), "has no SHA256SUMS"),
        (lambda there: there.pop("trials/idle/1/DONE"), "trials/idle/1/DONE is missing"),
        (lambda there: there.update({"trials/more": b"x"}), "trials/more was added to it"),
        (lambda there: there.update({"manifest.json": b"{}"}), "manifest.json was changed"),
    ],
)
def test_a_bundle_that_was_packed_anew_is_told(
    bundle: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None], told: str
) -> None:
    there = unpacked(bundle, tmp_path / "there")
    change(there)
    with zipfile.ZipFile(tmp_path / "anew.zip", "w") as made:
        for name, content in there.items():
            made.writestr(name, content)
    with pytest.raises(BundleError, match=told) as raised:
        unpacked(tmp_path / "anew.zip", tmp_path / "anew")
    assert raised.value.exit_code == (2 if "SHA256SUMS" in told else 1)


LITTER = tuple(
    "__MACOSX/._manifest.json .DS_Store trials/.DS_Store Thumbs.db fig/desktop.ini".split()
)


@pytest.mark.parametrize("packing", archive.COMPRESSIONS)
@pytest.mark.parametrize("top", ["", "fig3a-run (1)/", "Übung 3/"])
def test_repacked_bundle_is_the_same(bundle: Path, tmp_path: Path, top: str, packing: int) -> None:
    original = unpacked(bundle, tmp_path / "original")
    folders = ("", "trials/", "trials/idle/", "empty/") if top else ("trials/", "trials/idle/1/")
    with zipfile.ZipFile(tmp_path / "again.zip", "w", packing) as made:
        for folder in folders:
            made.mkdir(f"{top}{folder}")
        for name in sorted(original, reverse=True):
            made.writestr(f"{top}{name}", original[name])
        for name in LITTER:
            made.writestr(name if name.startswith("__") else f"{top}{name}", b"litter")
    assert unpacked(tmp_path / "again.zip", tmp_path / "again") == original


@pytest.mark.parametrize(
    "name", ["../.DS_Store", "/Thumbs.db", "__MACOSX/../../out", "/", "a\n/.DS_Store"]
)
def test_litter_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    path = evil(tmp_path / "evil.zip", (name, b""))
    with pytest.raises(BundleError, match="is not the name of a file in a bundle"):
        unpacked(path, tmp_path / "there")


@pytest.mark.parametrize("top", ["..", ".", "", "a/.."])
def test_top_folder_that_leads_out_is_refused(tmp_path: Path, top: str) -> None:
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as made:
        for name in ("trials/a", contents.SUMS):
            made.writestr(f"{top}/{name}", b"x")
    with pytest.raises(BundleError, match="is not the name of a file in a bundle"):
        unpacked(tmp_path / "evil.zip", tmp_path / "there")


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    for name, content in {
        "empty": b"",
        "text": b"hello",
        "half": b"PK\x03\x04" + bytes(40),
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BundleError, match="is not a bundle, or is damaged"):
            unpacked(tmp_path / name, tmp_path / f"{name}.there")
    with pytest.raises(BundleError, match="there is no bundle"):
        archive.unpack(tmp_path / "none", tmp_path)
    with pytest.raises(BundleError, match="cannot be read: it is not a file"):
        archive.unpack(tmp_path, tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(BundleError, match="cannot be read: it is not a file"):
        archive.unpack(tmp_path / "fifo", tmp_path)


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The content with one to four changes of the kinds that a file may suffer or an enemy make."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randrange(len(data)), chance.randint(1, 40)
        kind = chance.randrange(6)
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[at : at + length] = chance.randbytes(length)
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = chance.randbytes(length)
        elif kind == 4:
            there = chance.randrange(len(data))
            data[at : at + length] = data[there : there + length]
        else:  # the directory at the end, where sizes and places stand
            at = max(0, len(data) - chance.randint(1, 400))
            data[at : at + 4] = chance.choice((b"\xff\xff\xff\xff", bytes(4), b"\x00\x00\x00\x80"))
        if not data:
            data += b"x"
    return bytes(data)


def test_mutated_bundles_are_refused_or_the_same(bundle: Path, tmp_path: Path) -> None:
    chance, content = random.Random(1), bundle.read_bytes()
    whole = unpacked(bundle, tmp_path / "whole")
    path, there, refused = tmp_path / "mutated.zip", tmp_path / "there", 0
    before = set(os.listdir(tmp_path)) | {path.name}
    for _ in range(MUTATED):
        path.write_bytes(mutated(content, chance))
        try:
            assert unpacked(path, there) == whole  # the changes were where nothing is read
        except BundleError:
            refused += 1
        shutil.rmtree(there)
        assert set(os.listdir(tmp_path)) == before
    assert refused > 0.8 * MUTATED


def test_a_manifest_that_is_none_is_told_with_the_bundles_name(tmp_path: Path) -> None:
    archive.write(tmp_path / "mine.zip", {**FILES, "manifest.json": b"{}"})
    with pytest.raises(
        checking.RefusedError, match=rf"^{tmp_path}/mine.zip/manifest.json is no manifest: "
    ):
        checked(tmp_path / "mine.zip")


def test_a_manifest_whose_names_lead_out_is_refused(run: RunDirectory) -> None:
    text = (run.path / manifest.NAME).read_text()
    for name in ("../../out", "/tmp/out", "a/b", "", "..", "a\\nb"):
        (run.path / manifest.NAME).write_text(text.replace('"name": "idle"', f'"name": "{name}"'))
        with pytest.raises(UsageError, match="is not a valid name: start with"):
            manifest.read(run.path)


def test_a_report_that_says_something_else_is_told(
    judged: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "git", lambda: judged.manifest.git)
    run = RunDirectory(shutil.copytree(judged.path, tmp_path / judged.path.name))

    def report(name: str) -> list[str]:
        (tmp_path / f"{name}.there").mkdir()
        path = writing.write(run.path, tmp_path / f"{name}.zip")
        findings = judge.judge(path, tmp_path / f"{name}.there", options_of)
        return next(part.lines() for part in findings.parts if part.name == "report")

    assert report("one") == ["report: written again, it is the bundle's, apart from pictures"]
    for name in ("report.md", "report.html"):
        (run.path / name).write_text(
            (run.path / name).read_text().replace("latencies", "tortoises")
        )
    table = next((run.path / "fig").glob("*.csv"))
    table.write_text(table.read_text() + "1,2,3\n")
    problems = report("two")
    names = ("report.md", "report.html", f"fig/{table.name}")
    for name, problem in zip(sorted(names), problems, strict=True):
        assert problem.startswith(f"report: {name} is not what the raw files give, from line ")
    (run.path / "report.html").unlink()
    assert any(line.startswith("report: report.html is not what") for line in report("three"))


def test_a_report_of_another_version_is_not_compared(judged: RunDirectory, tmp_path: Path) -> None:
    path = writing.write(judged.path, tmp_path / "one.zip")
    assert (
        "report: not compared, as another version of qjump-mn wrote it: read yours\n"
        in checked(path)[1]
    )


def test_verdicts_that_are_invalid_cannot_be_believed(tmp_path: Path) -> None:
    """The files are what the run left, and its gate does not hold."""
    never = ["claims.contended.predicate=contended.ping.p50_ms > 1000000"]
    run = synthetic.make(tmp_path / "run", settings=never, only=["idle", "contended"])
    pipeline.analyse(run.path)
    assert {row.verdict for row in outcome.read(run.path).verdicts} >= {"INVALID"}
    code, text = checked(writing.write(run.path, tmp_path / "one.zip"))
    assert "the run cannot be believed: gate: " in text
    assert (code, text.splitlines()[-1]) == (4, "not all is well: see above")
    code, text = checked(tmp_path / "one.zip", rerun=AGAIN)
    assert (code, "not repeated: the run is invalid; add --arms or --sample" in text) == (4, True)


def test_check_never_reruns_on_the_host_backend(run: RunDirectory, tmp_path: Path) -> None:
    manifest.write(run.path, replace(run.manifest, backend="host"))
    bundle = writing.write(run.path, tmp_path / "one.zip")
    with pytest.raises(
        UsageError, match="names the backend 'host': a run is only verified in a guest or"
    ):
        checked(bundle, rerun=AGAIN)


def test_a_run_is_judged_where_its_experiments_file_is_not(
    judged: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(shutil.copytree(judged.path, tmp_path / judged.path.name))
    before = outcome.read(run.path)
    monkeypatch.setattr(published_comparison, "spec", refused)
    after = pipeline.analyse(run.path).outcome
    assert (after.verdicts, after.arms, after.beside) == (before.verdicts, before.arms, None)


def refused(experiment: str) -> None:
    raise UsageError(f"there is no experiment {experiment!r}")


def test_a_trial_whose_files_are_others_is_run_again(judged: RunDirectory, tmp_path: Path) -> None:
    run = RunDirectory(shutil.copytree(judged.path, tmp_path / judged.path.name))
    assert contents.damaged(run.path, run.manifest) == {}
    gone = next(name for name in run.manifest.files if name.startswith("trials/contended/1/raw/"))
    (run.path / gone).unlink()
    assert contents.damaged(run.path, run.manifest) == {"contended/1": f"{gone} is gone"}
    run.unmark("contended/1")
    assert not run.is_done("contended/1") and run.is_done("idle/1")
    assert contents.damaged(run.path, run.manifest) == {}
