"""What cannot work is said; where qjau is found."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

import pytest

from tests.native.app_util.qjau import (
    IS_ROOT,
    MARKED,
    NOBODY,
    PLAIN,
    PROBE,
    SOURCE,
    AppUtil,
    Words,
    check_refused,
    needs_root,
    run,
)


@pytest.mark.parametrize("option", ["-static", "-static-pie"])
def test_static(app: AppUtil, option: str) -> None:
    program = app.compile(f"probe{option}", PROBE, option)
    assert run([program]).stdout == PLAIN
    check_refused(app.run(program), 126, f"{program} is statically linked")


def test_a_script_is_judged_by_its_interpreter(app: AppUtil, tmp_path: Path) -> None:
    static = app.compile("statictool", PROBE, "-static")
    script = tmp_path / "script"
    path = {"PATH": f"{app.folder}:{os.environ['PATH']}"}
    for good in (f"#! /bin/sh -e \n{app.probe}\n", f"#!/usr/bin/env sh\n{app.probe}\n",
                 f"#!/usr/bin/env -S A=1 sh -e\n{app.probe}\n", f"{app.probe}\n"):  # fmt: skip
        script.write_text(good)
        script.chmod(0o755)
        assert app.run(script, env=path).stdout == MARKED, good
    env = "/usr/bin/env"
    for bad in (f"{static}", f" {static} -x", f"{env} statictool", f"{env} -S A=1 statictool"):
        script.write_text(f"#!{bad}\n")
        check_refused(app.run(script, env=path), 126, f"{static} is statically linked")


WRAPPERS = """nice|nice -5|nice -n 5|nice --adjustment 5|timeout 5|timeout -s KILL --kill-after=3 5|taskset 1|taskset -c 0
stdbuf -oL|stdbuf --output L|env|env -i A=1|env - B=2|env -u A -S A=1|nohup|setsid -w|chrt -o 0|ionice -c 3
/usr/bin/env timeout 5 nice -n 5 stdbuf -o L"""


@pytest.mark.parametrize("wrapper", WRAPPERS.replace("\n", "|").split("|"))
def test_a_wrapper_is_judged_by_what_it_starts(app: AppUtil, wrapper: str) -> None:
    static = app.compile("statictool", PROBE, "-static")
    check_refused(app.run(*wrapper.split(), static), 126, f"{static} is statically linked")
    cleaned = wrapper in ("env -i A=1", "env - B=2")
    assert app.run(*wrapper.split(), app.probe).stdout == (PLAIN if cleaned else MARKED), (
        "it runs otherwise"
    )


def test_what_a_wrapper_finds_elsewhere_is_not_judged(app: AppUtil) -> None:
    static = app.compile("statictool", PROBE, "-static")
    path = {"PATH": f"{app.folder}:{os.environ['PATH']}"}
    for other in (["PATH=/nowhere"], ["-C", "/"]):
        assert "is statically linked" not in app.run("env", *other, static.name, env=path).stderr
    assert app.run("taskset", "-p", "1", "1").returncode in (0, 1), "it starts nothing"


@pytest.mark.parametrize(
    "text",
    ["{0}", "true; {0}", "A=1 exec {0} x", "if true; then nice {0}; fi", "(true && sh -c '{0}')"],
)
def test_what_is_in_a_shells_text_is_said_and_runs(app: AppUtil, text: str) -> None:
    """It may not come to it, so it is not refused; but (({0})) in quotes is looked for by
    nobody."""
    static = app.compile("statictool", PROBE, "-static")
    result = app.run("sh", "-ec", text.format(static))
    said = rf"{static} is statically linked, [^;\n]*: it runs unmarked \(--cgroup needs .*\)"
    if "sh -c" not in text:
        assert (result.returncode, result.stdout) == (0, PLAIN)
        assert re.fullmatch(rf"qjau: {said}\n", result.stderr)
    for silent in (f"echo '; {static}'", f"false && {app.probe} || {app.probe}"):
        assert app.run("sh", "-c", silent).stderr == ""


def test_arguments_and_exit_code_are_the_programs(app: AppUtil, tmp_path: Path) -> None:
    script = tmp_path / "plain text"
    script.write_text('echo "$# $1"; exit 3\n')
    script.chmod(0o755)
    calls: list[Words] = [["--", script, "a b", "-v"], ["sh", script, "a b", "-v"]]
    for words in calls:
        result = app.run(*words)
        assert (result.returncode, result.stdout) == (3, "2 a b\n")
    assert app.run("sh", "-c", "kill -9 $$").returncode == -9


@needs_root
@pytest.mark.parametrize(("mode", "words"), [(0o4755, "setuid"), (0o2755, "setgid")])
def test_setuid_and_setgid(app: AppUtil, mode: int, words: str) -> None:
    program = app.folder / f"probe{mode:o}"
    shutil.copy(app.probe, program)
    program.chmod(mode)
    check_refused(app.run(program, user=NOBODY), 126, words)
    assert app.run(program).stdout == MARKED, "root gains nothing"
    env = {"LD_PRELOAD": str(app.library), "QJAU_PRIORITY": "6"}
    assert run([program], env=env, user=NOBODY).stdout == PLAIN, "the loader ignores the library"
    told: Words = ["setpriv", "--no-new-privs", app.command, "-p", "6", program]
    assert run(told, user=NOBODY).stdout == MARKED, "nor does anyone whom the kernel denies it"


@needs_root
def test_file_capabilities(app: AppUtil) -> None:
    program = app.folder / "probe.cap"
    shutil.copy(app.probe, program)
    try:  # cap_net_raw=ep, as ping has: revision 2, effective; permitted 1 << 13
        os.setxattr(program, "security.capability", bytes.fromhex("0100000200200000") + bytes(12))
    except OSError as error:
        pytest.skip(f"no file capabilities on this file system: {error}")
    check_refused(app.run(program, user=NOBODY), 126, "file capabilities")
    env = {"LD_PRELOAD": str(app.library), "QJAU_PRIORITY": "6"}
    assert run([program], env=env, user=NOBODY).stdout == PLAIN
    assert app.run(program).stdout == MARKED


@pytest.mark.parametrize(
    ("offset", "byte"), [(4, 1), (5, 2), (18, 0xB7 if os.uname().machine == "x86_64" else 62)]
)
def test_a_program_for_another_machine(
    app: AppUtil, tmp_path: Path, offset: int, byte: int
) -> None:
    program = tmp_path / "foreign"
    content = bytearray(app.probe.read_bytes())
    content[offset] = byte  # e_ident[EI_CLASS], e_ident[EI_DATA], e_machine
    program.write_bytes(content)
    program.chmod(0o755)
    check_refused(app.run(program), 126, "another machine or word size")


def test_a_missing_loader_and_go(app: AppUtil) -> None:
    program = app.compile("noloader", PROBE, "-Wl,--dynamic-linker=/nowhere/ld.so")
    why = "cannot be run: it needs the loader /nowhere/ld.so, which is missing here"
    check_refused(app.run(program), 126, why)
    note = r"""__asm__(".pushsection .note.go.buildid, \"a\", %note\n"
".long 4, 4, 4\n.asciz \"Go\\0\"\n.long 0\n.popsection");"""
    check_refused(app.run(app.compile("likego", PROBE + note)), 126, "is written in Go")


def test_a_damaged_program_is_not_given_to_the_shell(app: AppUtil, tmp_path: Path) -> None:
    program = tmp_path / "cut"
    content = app.probe.read_bytes()
    cut = [content[:size] for size in (4, 16, 63, 64, 100)]
    for damaged in (*cut, b"echo yes\0\n", b"\x7fELF\necho yes\n"):
        program.write_bytes(damaged)
        program.chmod(0o755)
        result = app.run(program, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (126, ""), damaged


def test_what_is_not_there_or_may_not_be_run(app: AppUtil, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    for missing in ("no-such-program", tmp_path / "none", plain / "below", ""):
        check_refused(app.run(missing), 127, "not found")
    for wrong in (plain, tmp_path):
        check_refused(app.run(wrong), 126, "cannot be run: Permission denied")
    result = app.run("plain", env={"PATH": str(tmp_path)})
    check_refused(result, 126, "cannot be run: Permission denied")
    later = {"PATH": f"{tmp_path}:{app.folder}"}
    (tmp_path / "probe").write_text("")
    # A file that may not be run is passed over, as by execvp.
    assert app.run("probe", env=later).stdout == MARKED
    assert app.run("probe", env={"PATH": ":/bin"}, cwd=app.folder).stdout == MARKED


@pytest.mark.parametrize("words", [["-p", "6x"], ["-p", ""], ["-p", "-1"], ["-p", "8"], ["-p", "+6"], ["-p", " 6"],
                                   ["-p", "4294967302"], ["-p", "6", "-w", "0"], ["-p", "6", "-w", "15.5k"],
                                   ["-p", "6", "-w", "1073741824"], ["-p"], ["-x"], ["--priority"], []])  # fmt: skip
def test_a_wrong_command_line(app: AppUtil, words: list[str]) -> None:
    result = app.run(*words, *(["true"] if len(words) > 1 else []), priority=None)
    assert (result.returncode, result.stdout) == (2, "")
    assert re.fullmatch(r"qjau: .*\nusage: qjau -p PRIORITY .*\n", result.stderr)


def test_no_command(app: AppUtil) -> None:
    assert app.run("--").returncode == 2


def test_help_and_manual_agree(app: AppUtil) -> None:
    result = app.run("--help", priority=None)
    manual = (SOURCE / "qjau.1").read_text()
    assert result.returncode == 0 and result.stderr == ""
    for code in ("2", "125", "126", "127"):
        assert re.search(rf"\b{code}\b", result.stdout) and f".It {code}\n" in manual
    for option in re.findall(r"^  -(\w)", result.stdout, re.MULTILINE):
        assert f".It Fl {option}" in manual


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_the_manual_is_well_formed() -> None:
    result = run(["mandoc", "-T", "lint", "-W", "warning", SOURCE / "qjau.1"])
    assert (result.returncode, result.stdout) == (0, "")


def test_priority_7(app: AppUtil) -> None:
    if IS_ROOT:
        assert app.run(app.probe, priority="7").stdout == MARKED.replace("6", "7")
    result = app.run(app.probe, priority="7", user=NOBODY if IS_ROOT else None)
    check_refused(result, 125, "priority 7 needs CAP_NET_ADMIN")


def test_a_window_beyond_the_kernels_limit(app: AppUtil) -> None:
    limit = int(Path("/proc/sys/net/core/wmem_max").read_text())
    check_refused(app.run("-w", str(limit + 1), app.probe), 125, f"net.core.wmem_max, {limit}")


def test_as_an_ordinary_user(app: AppUtil) -> None:
    result = app.run("-w", "15500", app.probe, user=NOBODY if IS_ROOT else None)
    assert (result.returncode, result.stdout, result.stderr) == (0, MARKED, "")


def test_an_installed_qjau_works_from_any_folder(app: AppUtil, tmp_path: Path) -> None:
    places = f"BUILD={app.folder} DESTDIR={tmp_path} PREFIX=/opt/q"
    assert run(["make", "-C", SOURCE, *places.split(), "install"]).returncode == 0
    installed = tmp_path / "opt/q"
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    assert files == {"bin/qjau", "lib/qjump-mn/libqjau.so", "share/man/man1/qjau.1"}
    modes = [path.stat().st_mode for path in installed.rglob("*")]
    assert not any(mode & (stat.S_ISUID | stat.S_IWOTH) for mode in modes)
    (tmp_path / "link").symlink_to(installed / "bin/qjau")
    assert run(["./link", "-p", "6", app.probe], cwd=tmp_path).stdout == MARKED
    path = {"PATH": f"{installed}/bin:/bin"}
    assert run(["qjau", "-p", "6", app.probe], cwd=Path("/"), env=path).stdout == MARKED


def test_a_missing_a_broken_and_an_unusable_library(app: AppUtil, tmp_path: Path) -> None:
    shutil.copy(app.command, tmp_path)
    argv: Words = [tmp_path / "qjau", "-p", "6", app.probe]
    check_refused(run(argv), 125, "libqjau.so is neither in")
    (tmp_path / "libqjau.so").write_text("no library")
    check_refused(run(argv), 125, "does not load")
    for name in ("with blank", "with:colon"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(app.command, folder)
        shutil.copy(app.library, folder)
        result = run([folder / "qjau", "-p", "6", app.probe])
        check_refused(result, 125, "LD_PRELOAD does not allow blanks or colons in paths")
