"""Do what the scripts of packages would do that programs need, without running them.

Links of update-alternatives are read from a package's postinst. Users, groups and folders in /var
and /run are read from it and from files of sysusers.d and tmpfiles.d. A shell script makes them in
the guest, before anything else runs there, because it needs the machine's own /etc/passwd.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

from qjump_mn.toolbox.cpio import Node

SCRIPTS = "opt/qjump-mn/packages.d"
"""The guest's folder of scripts that make users and folders, each run by sh as root."""

DESCRIPTIONS = re.compile(r"usr/lib/(sysusers|tmpfiles)\.d/[^/]+\.conf")
"""The names of files that describe users and folders."""

_MAKERS = "addgroup|adduser|chown|groupadd|mkdir|useradd|usermod"
_WITH_VALUE = frozenset(
    "--comment --gecos --gid --groups --home --home-dir --ingroup --mode --shell --uid -G -c -d -g "
    "-k -m -s -u".split()
)
_NO_SHELL = "/usr/sbin/nologin"
_END = re.compile(r"\d?[<>&|;]")
"""Where a command ends in a line of a shell."""

_SCRIPT = """\
# Made by qjump-mn from the packages' sysusers.d and tmpfiles.d.
has() { # FILE NAME-OR-*, ID-OR-*
    while IFS=: read -r other _ number _; do
        case "$other:$number" in $2:$3) return 0 ;; esac
    done <"$1"
    return 1
}
group() { # NAME ID
    has /etc/group "$1" '*' && return
    id=$2 next=999
    [ "$id" = - ] && while has /etc/group '*' $next || has /etc/passwd '*' $next; do
        next=$((next - 1))
    done
    [ "$id" = - ] && id=$next
    echo "$1:x:$id:" >>/etc/group
}
user() { # NAME ID HOME SHELL
    has /etc/passwd "$1" '*' && return
    group "$1" "$2"
    while IFS=: read -r name _ id _; do
        [ "$name" != "$1" ] || echo "$1:x:$id:$id::$3:$4" >>/etc/passwd
    done </etc/group
}
member() { # USER GROUP
    group "$2" -
    while IFS=: read -r other _ _ users; do
        case "$other:,$users," in "$2:"*",$1,"*) return ;; esac
    done </etc/group
    sed -i -e "/^$2:/!b" -e "s/:\\$/:$1/" -e t -e "s/\\$/,$1/" /etc/group
}
folder() { # PATH MODE OWNER
    mkdir -p "$1"
    [ "$2" = - ] || chmod "$2" "$1"
    [ "$3" = -:- ] || chown "$3" "$1"
}
"""


@dataclass(frozen=True)
class Alternative:
    """A link of update-alternatives: from ``link`` by way of /etc/alternatives/``name`` to
    ``path``."""

    link: str
    name: str
    path: str


def alternatives(scripts: Iterable[str]) -> list[Alternative]:
    """Return the links that scripts make with update-alternatives; the highest priority wins."""
    best: dict[str, tuple[int, list[Alternative]]] = {}
    for words in (words for one in scripts for words in _commands(one, "update-alternatives")):
        if "--install" not in words[:-4]:
            continue
        start = words.index("--install") + 1
        name, priority = words[start + 1], words[start + 3]
        places = [at + 1 for at, word in enumerate(words[:-3]) if word == "--slave"]
        links = [Alternative(*words[at : at + 3]) for at in (start, *places)]
        if priority.isdecimal() and int(priority) > best.get(name, (-1,))[0]:
            best[name] = (int(priority), links)
    return [one for _, links in best.values() for one in links]


def setup_script(scripts: Iterable[str], texts: Mapping[str, str]) -> dict[str, Node]:
    """Return the script that makes the users, groups and folders which the packages' scripts make,
    and files of sysusers.d and tmpfiles.d describe; nothing if there are none."""
    lines: list[str] = []
    for words in (words for one in scripts for words in _commands(one, _MAKERS)):
        lines += _made_by_command(words)
    for name, text in texts.items():
        for line in text.splitlines():
            try:
                words = [*shlex.split(line, comments=True), *["-"] * 6]
            except ValueError:  # an open quote: systemd skips such a line too
                continue
            lines += _user(words) if "/sysusers.d/" in name else _folder(words)
    if not lines:
        return {}
    text = _SCRIPT + "\n".join(sorted(dict.fromkeys(lines), key=_order)) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return {f"{SCRIPTS}/{digest}.sh": Node.file(text.encode())}


def _commands(script: str, pattern: str) -> Iterator[list[str]]:
    """Yield the words of each call of a command in a shell script, with plain variables and loops
    over words replaced."""
    values: dict[str, list[str]] = {}
    for line in script.replace("\\\n", " ").splitlines():
        if loop := re.match(r"\s*for\s+(\w+)\s+in\s+([^;]*)", line):
            values[loop[1]] = loop[2].split()
        elif assigned := re.match(r"\s*(\w+)=[\"']?([^\s\"'$`]*)[\"']?\s*$", line):
            values[assigned[1]] = [assigned[2]]
        call = re.match(rf"(?:.*(?:\|\||&&|;|\bthen)\s)?\s*((?:{pattern})\s.*)", line)
        if not call:
            continue
        used = [name for name in values if re.search(rf"\$({name}\b|{{{name}}})", call[1])]
        for chosen in product(*(values[name] for name in used)):
            text = call[1]
            for name, value in zip(used, chosen, strict=True):
                text = re.sub(rf"\$({name}\b|{{{name}}})", value.replace("\\", ""), text)
            with suppress(ValueError):  # an open quote: the line is part of something else
                words = shlex.split(text, comments=True)
                ends = (at for at, word in enumerate(words) if _END.match(word))
                yield words[: next(ends, None)]


def _made_by_command(words: list[str]) -> list[str]:
    """Return the script's lines for a command that makes users, groups or folders."""
    command, options, names = words[0], dict[str, str](), list[str]()
    rest = iter(words[1:])
    for word in rest:
        option, has_value, value = word.partition("=")
        if option in _WITH_VALUE:
            options[option] = value if has_value else next(rest, "")
        elif word.startswith("-"):
            options[option] = value
        else:
            names.append(word)
    if not names or any(re.search(r"[$`*]", name) for name in names):
        return []
    if command == "mkdir":
        return [_line("folder", name, "-", "-:-") for name in names if name.startswith("/var/")]
    if command == "chown":
        owner, *paths = names
        return [_line("folder", path, "-", owner) for path in paths if path.startswith("/var/")]
    if command in ("addgroup", "groupadd") or ("--group" in options and "--system" not in options):
        return [_line("group", names[0], _number(options, "--gid", "-g"))]
    lines = []
    if command != "usermod" and len(names) == 1:
        home, shell = (
            _value(options, "--home", "--home-dir", "-d"),
            _value(options, "--shell", "-s"),
        )
        number = _number(options, "--uid", "-u")
        lines = [_line("user", names[0], number, home or "/", shell or _NO_SHELL)]
    groups = _value(options, "--groups", "-G").split(",")
    return lines + [_line("member", names[0], group) for group in [*groups, *names[1:]] if group]


def _value(options: Mapping[str, str], *names: str) -> str:
    """Return the value of the option that has one of these names; "" if there is none."""
    return next((options[name] for name in names if name in options), "")


def _number(options: Mapping[str, str], *names: str) -> str:
    """Return an option's number; "-" if there is none."""
    value = _value(options, *names)
    return value if value.isdecimal() else "-"


def _line(*words: str) -> str:
    return shlex.join(words)


def _user(words: list[str]) -> list[str]:
    """Return the script's line for a line of sysusers.d."""
    kind, name, id_ = words[0].rstrip("!"), words[1], words[2].partition(":")[0]
    id_ = id_ if id_.isdecimal() else "-"
    match kind:
        case "u":
            home, shell = (word if word.startswith("/") else "" for word in words[4:6])
            return [_line("user", name, id_, home or "/", shell or _NO_SHELL)]
        case "g":
            return [_line("group", name, id_)]
        case "m":
            return [_line("member", name, words[2])]
    return []


def _folder(words: list[str]) -> list[str]:
    """Return the script's line for a line of tmpfiles.d."""
    if words[0].rstrip("!-+=~^$") not in ("d", "D", "q", "Q"):
        return []
    owner = f"{words[3]}:{words[4]}"
    return [_line("folder", words[1].replace("%%", "%"), words[2], owner)]


def _order(line: str) -> int:
    """Groups come before users, both before memberships, as systemd-sysusers has it."""
    return ("group", "user", "member", "folder").index(line.partition(" ")[0])
