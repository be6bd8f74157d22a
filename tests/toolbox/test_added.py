"""Packages that are added to the machine: resolved and unpacked without apt and dpkg, from a mirror
of our own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from qjump_mn import cache, toolbox
from qjump_mn.errors import MachineError, UsageError
from qjump_mn.toolbox import added, dependencies, machines, package_lists, postinst, selection
from qjump_mn.toolbox import lock as locks
from tests.support import debian_mirror, newc
from tests.support.debian_mirror import add

PRESENT = ["bash=5.2-1", "iperf=2.2-1", "libc6=2.41-1", "libold1=1.0-1"]
"""What the toolbox of these tests has. bash is in the guest, and so is what it needs."""

POSTINST = """
for name in tool other; do
    update-alternatives --quiet \\
        --install /bin/${name} ${name} /usr/bin/$name.big 50 \\
        --slave /usr/share/man/man1/${name}.1.gz ${name}.1.gz /usr/share/man/man1/big.1.gz \\
        --slave /sbin/s$name s${name} /usr/bin/$name.big
done
update-alternatives --install /usr/bin/tool tool /usr/bin/tool.small 10
getent group toolers >/dev/null || addgroup --system toolers
adduser --system --home /nonexistent --ingroup toolers toold >/dev/null 2>&1 || true
usermod -G toolers toold
mkdir -p /var/lib/tool
"""


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mirror"
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("QJUMP_MN_MIRROR", debian_mirror.lines(folder))
    monkeypatch.setenv("QJUMP_MN_ARCHIVE", "")
    needs = "libc6 (>= 2.40), libtool1 (>= 1.1~rc1), adduser, awk, python3-mod | python3-other"
    add(
        folder,
        {"Package": "tool", "Version": "1:2.0-1", "Depends": needs, "Pre-Depends": "iperf"},
        {
            "usr/bin/tool.big": "#!/bin/sh\necho big\n",
            "usr/bin/tool.small": "#!/bin/sh\necho small\n",
            "bin/plain": "#!/bin/sh\n",
            "usr/share/doc/tool/README": "read me",
            "usr/share/documents": "of the program",
            "usr/lib/systemd/system/tool.service": "[Unit]",
            "usr/lib/sysusers.d/tool.conf": 'g toolg 77 -\nu toolu - "A tool" /srv /bin/sh\n',
            "usr/lib/tmpfiles.d/tool.conf": "d /run/tool 0750 toolu toolg -\nr /tmp/x\n",
        },
        postinst=POSTINST,
    )
    for version, suite in (("1.0", "trixie"), ("1.1", "trixie-security")):
        fields = {"Package": "libtool1", "Version": version}
        add(folder, fields, {"usr/lib/libtool.so.1": version}, suite=suite)
    module = {"usr/lib/python3/dist-packages/mod.py": "ANSWER = 42\n"}
    add(folder, {"Package": "python3-mod", "Version": "3"}, module)
    add(folder, {"Package": "mawk", "Version": "1", "Provides": "awk"}, {"usr/bin/mawk": "#!"})
    add(folder, {"Package": "gawk", "Version": "1", "Provides": "awk"}, {"usr/bin/gawk": "#!"})
    add(folder, {"Package": "bash", "Version": "5.2-1", "Depends": "libc6, libold1"}, {})
    add(folder, {"Package": "libc6", "Version": "2.41-1"}, {})
    add(folder, {"Package": "libold1", "Version": "1.2-1"}, {})
    add(folder, {"Package": "iperf", "Version": "2.2-1"}, {"usr/bin/iperf": "#!"})
    add(folder, {"Package": "adduser", "Version": "3"}, {"usr/sbin/adduser": "#!"})
    return folder


def versions(*names: str) -> dict[str, str]:
    return locks.versions(added.resolve(names, PRESENT))


def test_packages_come_with_what_they_need_and_the_guest_lacks(mirror: Path) -> None:
    """iperf is in the toolbox, and not in the guest; libtool1 is newer in another suite."""
    wanted = {"tool": "1:2.0-1", "libtool1": "1.1", "python3-mod": "3", "gawk": "1"}
    assert versions("tool") == wanted | {"iperf": "2.2-1"}
    lock = added.resolve(["tool"], PRESENT)
    assert (lock.variant, lock.ask, lock.suite) == (added.VARIANT, ("tool",), "trixie")
    assert {one.archive for one in lock.have if one.package.name == "libtool1"} == {
        "debian-security"
    }
    assert versions("mawk", "tool").keys() == lock_names("tool") - {"gawk"} | {"mawk"}


def lock_names(*names: str) -> set[str]:
    return set(versions(*names))


def test_same_question_has_the_same_answer_when_the_mirror_moves_on(mirror: Path) -> None:
    before = added.resolve(["tool"], PRESENT).text
    add(mirror, {"Package": "libtool1", "Version": "1.2"}, {}, suite="trixie-security")
    assert added.resolve(["tool"], PRESENT).text == before
    cache.sweep()
    assert versions("tool", "bash")["libtool1"] == "1.2"


def test_package_that_is_there_needs_nothing(mirror: Path) -> None:
    lock = added.resolve(["bash"], PRESENT)
    assert lock.have == ()
    assert set(newc.read(added.archive(lock))) == {"TRAILER!!!"}


def test_newer_library_replaces_the_guests_if_it_must(mirror: Path) -> None:
    add(mirror, {"Package": "new", "Version": "1", "Depends": "libold1 (>= 1.1)"}, {})
    add(mirror, {"Package": "old", "Version": "1", "Depends": "libold1 (>= 1.0)"}, {})
    assert versions("old") == {"old": "1"}
    assert versions("old", "new") == {"old": "1", "new": "1", "libold1": "1.2-1"}


def test_packages_of_other_archives_are_not_added_again(mirror: Path) -> None:
    library = added.resolve(["libtool1"], PRESENT)
    beside = added.resolve(["tool"], PRESENT, beside=[library])
    assert set(locks.versions(beside)) == lock_names("tool") - {"libtool1"}


def test_what_was_asked_for_by_name_is_not_left_out(mirror: Path) -> None:
    assert versions("adduser") == {"adduser": "3"}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("tol", "^Debian trixie has no package 'tol': did you mean tool"),
        ("mod", "^Debian trixie has no package 'mod': did you mean python3-mod\\?$"),
        ("qqqqqq", "^Debian trixie has no package 'qqqqqq'$"),
        ("awk", "^awk is not a package, but a name for several: use gawk or mawk$"),
    ],
)
def test_unknown_package_lists_the_nearest(mirror: Path, name: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        added.resolve([name], PRESENT)


def test_missing_dependency_is_named(mirror: Path) -> None:
    add(mirror, {"Package": "broken", "Version": "1", "Depends": "nothing"}, {})
    with pytest.raises(MachineError, match=r"^broken needs nothing, which no mirror has$"):
        added.resolve(["broken"], PRESENT)


def test_list_that_its_release_file_does_not_name_is_refused(mirror: Path) -> None:
    path = mirror / "debian/dists/trixie/main/binary-amd64/Packages.xz"
    path.write_bytes(path.read_bytes()[:-4] + b"????")
    with pytest.raises(MachineError, match=r"Packages\.xz is not what its Release file says"):
        added.resolve(["tool"], PRESENT)


def test_no_mirror_is_said(mirror: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QJUMP_MN_MIRROR", f"file:{tmp_path}/none")
    with pytest.raises(MachineError, match=r"^no mirror has a list .*none\): set QJUMP_MN_MIRROR"):
        added.resolve(["tool"], PRESENT)


def test_archive_has_the_files_and_what_the_scripts_would_make(mirror: Path) -> None:
    path = added.archive(added.resolve(["tool"], PRESENT))
    found = newc.read(path)
    assert found["usr/lib/libtool.so.1"] == (0o100644, b"1.1")
    assert found["usr/lib/python3/dist-packages/mod.py"] == (0o100644, b"ANSWER = 42\n")
    assert found["usr/bin/tool.big"] == (0o100755, b"#!/bin/sh\necho big\n")
    assert "usr/bin/plain" in found and "bin" not in found
    assert "usr/share/documents" in found
    assert not {"usr/share/doc", "usr/lib/systemd"} & found.keys()
    links = {name: content.decode() for name, (mode, content) in found.items() if mode >> 12 == 10}
    assert links == {
        "usr/bin/tool": "/etc/alternatives/tool",
        "etc/alternatives/tool": "/usr/bin/tool.big",
        "usr/sbin/stool": "/etc/alternatives/stool",
        "etc/alternatives/stool": "/usr/bin/tool.big",
    }
    assert added.archive(added.resolve(["tool"], PRESENT)) == path


def test_script_makes_users_and_folders_beside_the_machines(mirror: Path, tmp_path: Path) -> None:
    found = newc.read(added.archive(added.resolve(["tool"], PRESENT)))
    ((_, script),) = (
        entry for name, entry in found.items() if name.startswith(f"{postinst.SCRIPTS}/")
    )
    root = tmp_path / "root"
    for _ in range(2):
        execute(script.decode(), root)
    group = (root / "etc/group").read_text().splitlines()
    passwd = (root / "etc/passwd").read_text().splitlines()
    assert group[2:] == ["toolers:x:998:toold", "toolg:x:77:", "toold:x:997:", "toolu:x:996:"]
    assert passwd[2:] == [
        "toold:x:997:997::/nonexistent:/usr/sbin/nologin",
        "toolu:x:996:996::/srv:/bin/sh",
    ]
    assert (root / "var/lib/tool").is_dir() and (root / "run/tool").stat().st_mode & 0o777 == 0o750


def test_user_may_have_a_group_that_is_not_the_last(tmp_path: Path) -> None:
    described = "g one - -\ng two - -\nu one - - / -\nm one two\n"
    (script,) = postinst.setup_script([], {"usr/lib/sysusers.d/x.conf": described}).values()
    assert isinstance(script.content, bytes)
    execute(script.content.decode(), tmp_path / "root")
    assert (tmp_path / "root/etc/group").read_text().endswith("one:x:998:\ntwo:x:997:one\n")
    assert "one:x:998:998::/:" in (tmp_path / "root/etc/passwd").read_text()


def execute(script: str, root: Path) -> None:
    """Run a script of packages.d as the guest does, in a folder."""
    if not root.exists():
        (root / "etc").mkdir(parents=True)
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\nx:x:999:1::/:\n")
        (root / "etc/group").write_text("root:x:0:\nadm:x:4:root\n")
    for top in ("etc", "var", "run"):
        script = script.replace(f" /{top}/", f" {root}/{top}/")
        script = script.replace(f"</{top}/", f"<{root}/{top}/")
    script = script.replace(">>/etc/", f">>{root}/etc/")
    # Nobody of these is a user of the computer that tests.
    subprocess.run(["sh", "-e", "-c", f"chown() {{ echo $*; }}\n{script}"], check=True)


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("1.0", "1.1"), ("1.9", "1.10"), ("1.0~rc1", "1.0"), ("1.0~~", "1.0~"), ("1.0", "1.0a"),
        ("1.0a", "1.0+b"), ("9", "1:1"), ("1.0-1", "1.0-1+b1"), ("1.0", "1.0-1"),
        ("1.8.11-2", "1.8.11-10"), ("3.0-2~deb12u1", "3.0-2"), ("2-1-1", "2-1-2"),
    ],
)  # fmt: skip
def test_versions_are_in_dpkgs_order(lower: str, higher: str) -> None:
    assert dependencies.key(lower) < dependencies.key(higher)
    argv = ["dpkg", "--compare-versions", lower, "lt", higher]
    assert subprocess.run(argv).returncode == 0


def test_dependencies_are_parsed_with_alternatives_and_versions() -> None:
    parsed = dependencies.parse("a (>= 1:2), b:any | c (<< 3~), d [amd64]")
    words = [[(need.name, need.operator, need.version) for need in needs] for needs in parsed]
    assert words == [
        [("a", ">=", "1:2")],
        [("b", "", ""), ("c", "<<", "3~")],
        [("d", "", "")],
    ]
    assert parsed[0][0].allows("1:2") and not parsed[0][0].allows("3")


def test_curated_packages_change_nothing_of_the_reference_machine() -> None:
    assert machines.differences(machines.read()) == []
    lock = locks.read(added.NAME)
    assert lock.variant == added.VARIANT
    toolbox_versions = locks.versions(locks.read(toolbox.NAME))
    for name, version in locks.versions(lock).items():
        assert toolbox_versions.get(name, version) == version, name


@pytest.mark.slow
def test_debians_lists_have_the_curated_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And tell of the guest's packages what dpkg tells in the toolbox."""
    (tmp_path / "apt").mkdir()
    if not debian_mirror.of_apt(tmp_path / "mirror", tmp_path / "apt"):
        pytest.skip("no mirror of Debian can be reached")
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("QJUMP_MN_MIRROR", debian_mirror.lines(tmp_path / "mirror"))
    lock = locks.read(added.NAME)
    newest = added.newest(lock, lock.time, print)
    assert set(lock.ask) <= set(locks.versions(newest)) == set(locks.versions(lock))
    monkeypatch.delenv("QJUMP_MN_CACHE")
    if (tree := toolbox.found()) is None:
        pytest.skip("the toolbox is not built")
    present = {one.name: one.version for one in tree.packages}
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    held = added._held(package_lists.read(lock.suite, print), present)
    assert set(held) == selection._closure(tree)
