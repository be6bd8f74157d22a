"""The documentation as a site: it is built without a warning, and all in it leads somewhere. What
it needs is not in the project's environment: bench/site.py installs it, apart."""

from __future__ import annotations

import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

from bench import gallery, schema, site, web
from qjump_mn.errors import MachineError
from tests.docs.test_documents import DOCUMENTS
from tests.support.processes import execute

ROOT = site.ROOT
DOCS = ROOT / "docs"
HOME = Path("docs/README.html")


class Page(NamedTuple):
    """What a page of the site has."""

    links: list[str]
    loaded: list[str]
    anchors: set[str]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page([], [], set())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what leads somewhere, what a browser fetches by itself, and where links may lead."""
        found = dict(attributes)
        self.page.anchors.update(value for key in ("id", "name") if (value := found.get(key)))
        if tag == "a" and (target := found.get("href")):
            self.page.links.append(target)
        fetched = found.get("src") or (found.get("href") if tag == "link" else None)
        if fetched and not fetched.startswith("data:"):
            self.page.loaded.append(fetched)


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python that has Sphinx and the others."""
    try:
        return site.python()
    except MachineError as error:
        pytest.skip(f"what builds the site cannot be had here: {error}")


class Site(NamedTuple):
    """What was built; ``pages`` by their paths below ``folder``."""

    folder: Path
    pages: dict[Path, Page]


@pytest.fixture(scope="module")
def built(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("site")
    assert site.build(folder) == 0
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        reader = _Reader()
        reader.feed(path.read_text())
        pages[path.relative_to(folder)] = reader.page
    return Site(folder, pages)


@pytest.mark.slow
def test_every_document_is_a_page_and_in_the_contents(built: Site) -> None:
    names = {
        path.relative_to(ROOT).with_suffix(".html") for path in (*DOCUMENTS, *DOCS.glob("*.ipynb"))
    }
    assert names <= set(built.pages)
    listed = {(DOCS / urlsplit(link).path).resolve() for link in built.pages[HOME].links}
    assert {name for name in names if (ROOT / name).resolve() not in listed} == {HOME}


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere(built: Site) -> None:
    for name, page in built.pages.items():
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or not (parts.path or parts.fragment):
                continue
            target = (built.folder / name.parent / unquote(parts.path or name.name)).resolve()
            assert target.exists(), f"{name}: {link}"
            if parts.fragment and target.suffix == ".html":
                anchors = built.pages[target.relative_to(built.folder)].anchors
                assert unquote(parts.fragment) in anchors, f"{name}: {link}"


@pytest.mark.slow
def test_a_browser_fetches_nothing_from_elsewhere(built: Site) -> None:
    assert not {
        link for page in built.pages.values() for link in page.loaded if urlsplit(link).netloc
    }


@pytest.mark.slow
def test_the_site_has_the_simulator_and_links_it(built: Site) -> None:
    page = Path(web.PLACE)
    assert page in built.pages
    assert f"../{page}" in built.pages[Path("docs/simulator.html")].links


@pytest.mark.slow
def test_the_gallery_shows_a_thumbnail_of_each_figure_and_leads_to_it(built: Site) -> None:
    page = built.pages[Path("docs/gallery.html")]
    thumbnails = [link for link in page.loaded if f"{gallery.THUMBNAILS}/" in link]
    names = re.findall(r"\]\(figures/(\S+)\.md\)", gallery.PAGE.read_text())
    assert len(thumbnails) == len(names) > 25
    assert {f"figures/{name}.html" for name in names} <= set(page.links)


def test_a_site_can_be_built_where_the_simulator_cannot(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> str:
        raise MachineError("no compiler")

    monkeypatch.setattr(web, "page", refused)
    assert site._simulator() == ""
    assert capsys.readouterr().err == "site: without simulator/index.html: no compiler\n"


@pytest.mark.slow
def test_the_tutorial_was_run(built: Site) -> None:
    text = (built.folder / "docs/tutorial.html").read_text()
    assert "<svg" in text and 'class="dataframe"' in text and "_images/" in text
    notebook = json.loads((DOCS / "tutorial.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(re.findall(r'class="cell_input[ "]', text)) == len(cells)
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)


VALIDATE = """
import json, sys
from jsonschema import Draft202012Validator
schemas, files = json.load(sys.stdin)
for schema in schemas.values():
    Draft202012Validator.check_schema(schema)
print(json.dumps([
    [f"{'.'.join(map(str, one.absolute_path))}: {one.message}" for one in Draft202012Validator(schemas[kind]).iter_errors(content)]
    for kind, content in files
]))
"""
FOLDERS = {
    "experiment": ("experiments", "examples/experiments", "examples/extension/src/*/experiments"),
    "scheme": ("schemes", "examples/extension/src/*/schemes"),
    "topology": ("topologies", "examples/extension/src/*/topologies"),
}
SLIM = """
[workloads.ping]
program = "ping"
flows = ["h8>h10"]
[arms.idle]
workloads = ["ping"]
"""


def errors(python: Path, files: list[tuple[str, dict[str, Any]]]) -> list[list[str]]:
    """What the schemas have against the content of each file of a kind."""
    asked = json.dumps([schema.schemas(), files])
    done = execute([python, "-c", VALIDATE], input=asked, check=True)
    found: list[list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_the_files_that_are_delivered_fit_the_schemas(python: Path) -> None:
    paths = [
        (kind, path)
        for kind, folders in FOLDERS.items()
        for folder in folders
        for path in sorted(ROOT.glob(f"{folder}/*.toml"))
    ]
    assert {kind for kind, _ in paths} == set(FOLDERS) and len(paths) > 40
    found = errors(python, [(kind, tomllib.loads(path.read_text())) for kind, path in paths])
    assert {path.name: wrong for (_, path), wrong in zip(paths, found, strict=True) if wrong} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"link": {"rate": "10"}}, "link.rate"),
        ({"durration": "10s"}, "durration"),
        ({"presets": {"course": {"arms": {"idle": {"sceme": "qjump"}}}}}, "sceme"),
        ({"workloads": {"ping": {"program": "ping", "flows": "h8>h10"}}}, "workloads.ping"),
        ({"workloads": {"ping": {"program": "ping", "flows": ["h8>h10"], "cuont": 3}}},
         "workloads.ping"),
        ({"arms": {"idle": {}}}, "workloads"),
    ],
)  # fmt: skip
def test_a_schema_finds_what_is_wrong(change: dict[str, Any], place: str, python: Path) -> None:
    slim = tomllib.loads(SLIM)
    right, (sentence, *_) = errors(
        python, [("experiment", slim), ("experiment", {**slim, **change})]
    )
    assert right == [] and re.search(place, sentence)
