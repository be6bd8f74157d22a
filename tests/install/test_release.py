"""A release: the parts of it that need no build, and the whole of it at night."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench import release, sbom, simulator_wheel
from qjump_mn.errors import UsageError
from qjump_mn.install import provenance
from qjump_mn.toolbox import build, simulator
from tests.install.test_wheel import PIP
from tests.support.processes import execute

ROOT = release.ROOT
COMMIT, EPOCH_S = "0123456789abcdef", 1_800_000_000
FILES = (
    "qjump_mn-0.1.0-py3-none-any.whl",
    "qjump_sim-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl",
    "mininet_qos-0.1.0.tar.gz",
    "qjump-mn-machine.tar.xz",
    "qjump-mn-machine-arm64.tar.xz",
    "RELEASE-NOTES.md",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release's files, each with its name in it."""
    for name in FILES:
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.fixture
def document(folder: Path) -> sbom.Entry:
    return sbom.document("0.1.0", COMMIT, EPOCH_S, sorted(folder.iterdir()))


def identifiers(document: sbom.Entry) -> list[str]:
    return [package["SPDXID"] for package in document["packages"]]


def test_sbom_has_what_spdx_requires(document: sbom.Entry) -> None:
    """SPDX 2.3, clauses 6, 7 and 11: mandatory fields, and the forms of identifiers and times."""
    assert (document["spdxVersion"], document["dataLicense"]) == ("SPDX-2.3", "CC0-1.0")
    created = document["creationInfo"]["created"]
    assert created == "2027-01-15T08:00:00Z"
    known = [document["SPDXID"], *identifiers(document)]
    assert len(known) == len(set(known)) > 300
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", each) for each in known)
    for package in document["packages"]:
        assert package["name"] and package["downloadLocation"] == "NOASSERTION"
        for checksum in package.get("checksums", ()):
            assert re.fullmatch("[0-9a-f]{64}", checksum["checksumValue"])
    relations = [tuple(relation.values()) for relation in document["relationships"]]
    assert len(relations) == len(set(relations))
    for relation in document["relationships"]:
        assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= set(known)


def test_sbom_describes_each_file_with_its_hash(document: sbom.Entry, folder: Path) -> None:
    described = {
        relation["relatedSpdxElement"]
        for relation in document["relationships"]
        if relation["relationshipType"] == "DESCRIBES"
    }
    packages = [each for each in document["packages"] if each["SPDXID"] in described]
    hashes = {each["packageFileName"]: each["checksums"][0]["checksumValue"] for each in packages}
    assert hashes == {
        name: hashlib.sha256(name.encode()).hexdigest() for name in FILES if name[0] != "R"
    }
    assert all(each["licenseDeclared"].startswith("GPL-2.0") for each in packages)


def needed(names: list[str]) -> set[str]:
    """What installed packages say that they need, directly or not."""
    found: set[str] = set()
    while names:
        name = canonicalize_name(names.pop())
        if name not in found:
            found.add(name)
            requirements = map(Requirement, importlib.metadata.requires(name) or ())
            names += [
                each.name for each in requirements if not each.marker or each.marker.evaluate()
            ]
    return found


def test_sbom_has_the_python_packages_that_running_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {str(entry["name"]) for entry in sbom.python_packages()}
    assert needed([Requirement(each).name for each in project["dependencies"]]) <= names
    assert not {"pytest", "ruff", "distributed"} & names


def test_sbom_has_crates_without_those_of_tests() -> None:
    names = {entry["name"] for entry in sbom.rust_crates(ROOT / "simulator")}
    assert {"libm", "serde", "pyo3"} <= names and "proptest" not in names


def test_sbom_names_of_packages_do_not_collide() -> None:
    pairs = [("a+b", "1"), ("a:b", "1"), ("a-b", "1"), ("a~b", "1")]
    found = [sbom._package("deb", name, version, "")["SPDXID"] for name, version in pairs]
    assert len(set(found)) == len(pairs)


def test_notes_are_the_versions_section_else_that_of_unreleased_changes() -> None:
    text = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- new\n\n## [1.0.0] - 2026-01-02\n\n- old\n\n[1.0.0]: x\n"
    assert release.notes_of(text, "1.0.0") == "# qjump-mn 1.0.0\n\n- old\n"
    assert release.notes_of(text, "1.1.0") == "# qjump-mn 1.1.0\n\n### Added\n\n- new\n"
    with pytest.raises(UsageError, match=r"has no section \[1\.1\.0\]"):
        release.notes_of("# Changelog\n", "1.1.0")
    ours = release.notes_of((ROOT / "CHANGELOG.md").read_text(), release.VERSION)
    assert len(ours.splitlines()) > 3


def test_sums_are_those_of_sha256sum(folder: Path) -> None:
    (folder / release.SUMS).write_text(release.sums(folder))
    assert len((folder / release.SUMS).read_text().splitlines()) == len(FILES)
    execute(["sha256sum", "--check", "--strict", release.SUMS], cwd=folder, check=True)


def test_a_changed_checkout_is_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for state in (provenance.Git("", False), provenance.Git(COMMIT, True)):
        monkeypatch.setattr(provenance, "git", lambda folder, state=state: state)
        with pytest.raises(UsageError, match="the checkout differs from its commit"):
            release.release(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A simulator that is not compiled."""
    folder = tmp_path / "package"
    (folder / "qjump_sim/__pycache__").mkdir(parents=True)
    (folder / "qjump_sim/__pycache__/x.pyc").touch()
    (folder / "qjump_sim/__init__.py").write_text("answer = 42\n")
    return folder


def test_pip_installs_the_simulators_wheel(package: Path, tmp_path: Path) -> None:
    identity = build.identity_of(simulator.recipe())
    wheel = simulator_wheel.write(tmp_path, package, "x86_64", identity, EPOCH_S)
    (tmp_path / "again").mkdir()
    again = simulator_wheel.write(tmp_path / "again", package, "x86_64", identity, EPOCH_S)
    assert wheel.read_bytes() == again.read_bytes()
    site = tmp_path / "site"
    platform = ["--platform", "manylinux_2_34_x86_64", "--python-version", "3.14"]
    options = ["--no-deps", "--no-index", "--only-binary=:all:", "--target", str(site)]
    execute([*PIP, "install", *platform, *options, str(wheel)], check=True)
    assert (site / "qjump_sim/__init__.py").read_text() == "answer = 42\n"
    (distribution,) = importlib.metadata.distributions(path=[str(site)])
    assert distribution.metadata["License-Expression"] == "GPL-2.0-or-later"
    assert distribution.requires == ["numpy>=1.26"]
    for file in distribution.files or ():
        if file.hash and file.name not in ("INSTALLER", "REQUESTED"):
            digest = hashlib.sha256(Path(str(file.locate())).read_bytes()).digest()
            assert file.hash.value == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@pytest.mark.parametrize("identity", ["", "of other sources"])
def test_an_installed_simulator_is_used_if_its_sources_are_the_same(
    identity: str, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert simulator.installed() is None
    (tmp_path / "site").mkdir()
    same = build.identity_of(simulator.recipe())
    wheel = simulator_wheel.write(tmp_path, package, "x86_64", identity or same, EPOCH_S)
    execute([sys.executable, "-m", "zipfile", "-e", str(wheel), str(tmp_path / "site")], check=True)
    importlib.invalidate_caches()
    assert simulator.installed() == (None if identity else tmp_path / "site")


def test_the_extra_asks_for_this_simulator() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = f"qjump-sim=={simulator_wheel.version()}"
    assert project["optional-dependencies"]["simulator"] == [wanted]


@pytest.mark.nightly
def test_sbom_is_valid_for_the_spdx_projects_own_tools(document: sbom.Entry, folder: Path) -> None:
    python = folder / "venv/bin/python"
    execute([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    execute([str(python), *PIP[1:], "install", "spdx-tools>=0.8,<0.9"], check=True)
    (folder / "sbom.spdx.json").write_text(json.dumps(document))
    tool = [str(python.with_name("pyspdxtools")), "--version", "SPDX-2.3"]
    done = execute([*tool, "--infile", str(folder / "sbom.spdx.json")])
    assert done.returncode == 0, done.stdout + done.stderr
