"""pip's own wheel, by its hash, from the index that pip would ask.

Debian's python3 has neither pip nor ensurepip, and a Python that has them has any version. So pip is had as
everything else: as requirements.lock names it. What pip is told where to look, by its variables and its files
(pip's documentation, "Configuration"), is read here, for there is no pip yet to read it. Like environment.py,
the standard library only.
"""

from __future__ import annotations

import base64
import configparser
import hashlib
import html.parser
import http.client
import netrc
import os
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from qjump_mn import wheels
from qjump_mn.errors import MachineError

DEFAULT = "https://pypi.org/simple"
"""The index where pip is told of no other, by $PIP_INDEX_URL or in its file."""

_TIMEOUT_S = 30.0
_PAUSES_S = (0.0, 1.0, 4.0)
"""Before each attempt: a busy index may refuse one."""

_NOT_THERE = (401, 403, 404, 410)
_MOST_BYTES = 50 << 20
_FAILURES = (OSError, http.client.HTTPException, ValueError)


def pip_wheel(folder: Path, lock: Path) -> Path:
    """The locked pip's wheel, fetched into the folder. Raises MachineError where it can be had nowhere, and
    OSError where it cannot be written."""
    name, expected = wheels.pip_of(lock), wheels.hashes(lock)
    settings = configuration()
    reasons = []
    for place in _places(settings):
        try:
            data = _had(place, name, settings)
        except _FAILURES as error:
            reasons.append(f"{_shown(place)} cannot be read: {_reason(error)}")
            continue
        if data is None:
            reasons.append(f"{_shown(place)} has none")
        elif hashlib.sha256(data).hexdigest() not in expected:
            reasons.append(f"that of {_shown(place)} has another hash")
        else:
            (folder / name).write_bytes(data)
            return folder / name
    why = "; ".join(reasons) or "pip is told to ask no index"
    raise MachineError(
        f"{name} cannot be had ({why}): set PIP_INDEX_URL to an index, or {wheels.VARIABLE} to a wheels file"
    )


def configuration() -> dict[str, str]:
    """pip's settings for `pip install`, by their long names: files first, then those of the command, then
    variables."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(_files(), encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise MachineError(f"pip's configuration cannot be read: {error}") from error
    found: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            found |= {name.replace("_", "-"): value for name, value in parser.items(section)}
    for variable, value in os.environ.items():
        if variable.startswith("PIP_") and value:
            found[variable[4:].lower().replace("_", "-")] = value
    return found


def _files() -> list[str]:
    """pip's files in the order in which it reads them: a later one counts more."""
    chosen = os.environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return []
    home = os.path.expanduser("~")
    shared = os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    own = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    files = [f"{folder}/pip/pip.conf" for folder in shared.split(os.pathsep)]
    files += ["/etc/pip.conf", f"{home}/.pip/pip.conf", f"{own}/pip/pip.conf"]
    return [*files, chosen] if chosen else files


def _places(settings: dict[str, str]) -> Iterator[str]:
    """Folders and pages on which pip's wheel may be."""
    yield from settings.get("find-links", "").split()
    if settings.get("no-index", "").lower() not in ("", "0", "false", "no", "off"):
        return
    for index in (settings.get("index-url", DEFAULT), *settings.get("extra-index-url", "").split()):
        yield f"{index.rstrip('/')}/pip/"


def _had(place: str, name: str, settings: dict[str, str]) -> bytes | None:
    """The file of that name at a place; None if there is none. Raises one of _FAILURES."""
    if "://" not in place and not place.startswith("file:"):
        place = Path(os.path.expanduser(place)).absolute().as_uri()
    if place.startswith("file:"):
        folder = Path(urllib.request.url2pathname(urllib.parse.urlsplit(place).path))
        if folder.is_dir():
            return (folder / name).read_bytes() if (folder / name).is_file() else None
    page = _Page(place)
    page.feed(_got(place, settings).decode("utf-8", "replace"))
    for address in page.links:
        if urllib.parse.unquote(urllib.parse.urlsplit(address).path).rpartition("/")[2] == name:
            return _got(address, settings, of=place)
    return None


class _Page(html.parser.HTMLParser):
    """A page of an index (PEP 503): the addresses in its links."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self._base = address

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get("href")
        if tag == "base" and address:
            self._base = urllib.parse.urljoin(self._base, address)
        elif tag == "a" and address:
            self.links.append(urllib.parse.urljoin(self._base, address))


def _got(address: str, settings: dict[str, str], of: str = "") -> bytes:
    """What is at an address; ``of`` is the page that it is linked from. Raises one of _FAILURES."""
    parts = urllib.parse.urlsplit(address)
    host = parts.hostname or ""
    bare = urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
    request = urllib.request.Request(bare, headers={"Accept": "text/html, */*;q=0.1"})
    login = _login(address) or (_login(of) if urllib.parse.urlsplit(of).netloc.endswith(parts.netloc) else "")
    if login:
        # Not to be sent on to another host that this one names.
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    opener = _opener(settings, host, has_login=bool(login))
    timeout_s = float(settings.get("timeout", settings.get("default-timeout", _TIMEOUT_S)))
    for attempt, pause_s in enumerate(_PAUSES_S, start=1):
        time.sleep(pause_s)
        try:
            with opener.open(request, timeout=timeout_s) as answer:
                return bytes(answer.read(_MOST_BYTES))
        except _FAILURES as error:
            is_final = isinstance(error, urllib.error.HTTPError) and error.code in _NOT_THERE
            if is_final or attempt == len(_PAUSES_S):
                raise
    raise AssertionError


def _login(address: str) -> str:
    """Who asks, as user:password: of the address itself, or of ~/.netrc; empty for nobody."""
    parts = urllib.parse.urlsplit(address)
    if parts.username is not None:
        return f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
    try:
        known = netrc.netrc(os.environ.get("NETRC")).authenticators(parts.hostname or "")
    except (OSError, netrc.NetrcParseError):
        return ""
    return f"{known[0]}:{known[2]}" if known else ""


def _opener(settings: dict[str, str], host: str, *, has_login: bool) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = []
    if proxy := settings.get("proxy"):
        handlers.append(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
    variables = (os.environ.get(name) for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"))
    authorities = next((path for path in (settings.get("cert"), *variables) if path), None)
    is_folder = authorities is not None and os.path.isdir(authorities)
    context = ssl.create_default_context(
        cafile=None if is_folder else authorities, capath=authorities if is_folder else None
    )
    if client := settings.get("client-cert"):
        context.load_cert_chain(client)
    trusted = [name.partition(":")[0] for name in settings.get("trusted-host", "").split()]
    # A plain Debian knows no authority. The file's hash says that it is the one, whoever sends it; a password
    # is told to nobody who is not known.
    knows_nobody = authorities is None and not has_login and not _knows_authorities(context)
    if host in trusted or knows_nobody:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return urllib.request.build_opener(*handlers, urllib.request.HTTPSHandler(context=context))


def _knows_authorities(context: ssl.SSLContext) -> bool:
    folder = ssl.get_default_verify_paths().capath
    return bool(context.cert_store_stats()["x509_ca"]) or bool(folder and any(Path(folder).iterdir()))


def _shown(place: str) -> str:
    """A place without the password in it."""
    return re.sub(r"//[^/@]*@", "//", place)


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return (getattr(reason, "strerror", None) or str(reason)).strip(". ").lower()
