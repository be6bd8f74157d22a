"""The reports: complete, self-contained, and safe whatever a program printed."""

from __future__ import annotations

import html.parser
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

from qjump_mn import resolve
from qjump_mn.analysis import pipeline
from qjump_mn.model.plan import ArmPlan, Plan
from qjump_mn.programs import registry
from qjump_mn.report import asbuilt, document, links, original
from qjump_mn.results import formatting, remarks
from qjump_mn.results import outcome as outcomes
from qjump_mn.results.directory import RunDirectory
from qjump_mn.results.manifest import Manifest
from qjump_mn.results.outcome import LinkLoad, Spread
from tests.support import synthetic
from tests.support.processes import cli

VOID = {"meta", "br", "link", "img", "hr", "input"}


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> pipeline.Analysed:
    return pipeline.analyse(
        synthetic.make(tmp_path_factory.mktemp("report") / "results", replicates=2).path
    )


@pytest.fixture(scope="module")
def page(analysed: pipeline.Analysed) -> str:
    return (analysed.run.path / "report.html").read_text()


@pytest.fixture(scope="module")
def text(analysed: pipeline.Analysed) -> str:
    return (analysed.run.path / "report.md").read_text()


class Reader(html.parser.HTMLParser):
    """Collects the visible text, the links, the ids, and whether every element is closed."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.feed(content)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._attributes(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    def _attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                self.ids.append(value or "")
            if name == "href" and tag == "a":
                self.links.append(value or "")
            elif name in ("src", "href", "xlink:href", "srcset", "action"):
                self.fetched.append(value or "")


def test_the_page_is_well_formed_and_fetches_nothing(page: str) -> None:
    reader = Reader(page)
    assert reader.open == []
    assert all(address.startswith("#") for address in reader.fetched)
    assert {address[1:] for address in reader.fetched} <= set(reader.ids)
    assert len(reader.ids) == len(set(reader.ids))
    assert "Content-Security-Policy" in page and "default-src 'none'" in page
    for forbidden in ("<script", "@import", "http://", "https://"):
        assert forbidden not in re.sub(r'xmlns(:\w+)?="[^"]+"', "", page), forbidden
    assert set(re.findall(r"url\(([^)]*)\)", page)) <= {f"#{name}" for name in reader.ids}


def test_every_link_leads_somewhere(page: str, text: str, analysed: pipeline.Analysed) -> None:
    reader = Reader(page)
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    slugs = [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
    for found, anchors in ((reader.links, reader.ids), (re.findall(r"\]\(([^)]+)\)", text), slugs)):
        assert len(found) > 15
        for link in found:
            is_there = (
                link[1:] in anchors if link[0] == "#" else (analysed.run.path / link).exists()
            )
            assert is_there, link


def test_the_contents_below_the_summary_list_every_section(page: str, text: str) -> None:
    before, _, rest = page.partition('<nav class="contents"')
    contents, _, after = rest.partition("</nav>")
    assert before.count("</section>") == 1 and "<h2" not in before
    listed = re.findall(r'<li><a href="#([^"]+)">([^<]+)</a></li>', contents)
    assert listed == re.findall(r'<h2 id="([^"]+)">([^<]+)</h2>', after)
    assert [name for _, name in listed] == re.findall("^## (.*)$", text, re.MULTILINE)


def test_both_have_arms_verdicts_and_checks(
    page: str, text: str, analysed: pipeline.Analysed
) -> None:
    plan, outcome = analysed.manifest.plan, analysed.outcome
    for content in (Reader(page).text, " ".join(text.replace("\\|", "|").split())):
        for arm in plan.arms:
            assert arm.label in content
            assert arm.name in content
        for row in outcome.verdicts:
            for part in (
                row.verdict,
                row.statement,
                row.source,
                row.predicate,
                formatting.value(row),
            ):
                assert part in content
        for check in outcome.checks:
            assert check.text in content
        for remark in plan.shown.remarks:
            assert remark in content
        for drawing in outcome.drawings:
            assert " ".join(drawing.caption.split()) in " ".join(content.split())
        for part in (
            plan.shown.title,
            plan.shown.question,
            plan.shown.reproduces,
            "model value, not a measurement",
            "the effect is that of the priorities",
        ):
            assert part in content


def test_parameters_and_the_way_back(page: str, text: str, analysed: pipeline.Analysed) -> None:
    manifest = analysed.manifest
    for content in (Reader(page).text, " ".join(text.split())):
        for part in (
            "2 × 12 × 1500 B × 8 / 10 Mb/s",
            "28.8 ms",
            "2 × 4 links × ((8 + 106) B × 8 / 10 Mb/s)",
            "0.7296 ms",
            "465000 B = 129.2 Mb/s",
            "152200 B, 121.8 ms",
            "socket buffers of 15500 B in 'window only (15.5 kB)'",
            "qjump-mn run fig3a --preset smoke",
            f"git checkout {manifest.git.commit}",
            manifest.plan_sha256,
            analysed.outcome.results_sha256,
            *manifest.machine.values(),
            "iputils",
            "20240905",
        ):
            assert part in content, part


def test_the_network_as_built_is_summarised(text: str) -> None:
    assert "wire 5: root rate_bps 10000000, limit 152200, delay_ns 0, classify pcp" in text
    assert "    qjump 6: parent 5:1 epoch_ns 28800000, slack_ns 25000" in text
    assert "18 × wire" in text
    assert "Qdiscs of switch port s3-eth2, towards h10" in text


def test_the_network_as_built_is_that_of_the_arm(tmp_path: Path) -> None:
    """An arm may have another than the experiment, such as in a sweep of topologies."""
    run = synthetic.make(tmp_path, only=["idle", "contended"])
    plan, found = run.manifest.plan, pipeline.analyse(run.path).outcome
    other = resolve.plan("fig11", "smoke", []).shown.network
    assert other.hosts != plan.shown.network.hosts
    elsewhere = synthetic.altered(plan, shown={"network": other})
    built = asbuilt.summary(run, elsewhere)
    assert built is not None and built == asbuilt.summary(run, plan)
    carried = LinkLoad(
        source="h1", destination="s1", level=None, share=0.5, drops=0, marks=0, most_bytes=0
    )
    found = replace(found, links={"idle": (carried,)})
    shown = links.loads(plan, found)
    assert links.loads(elsewhere, found) == shown and shown[0].rows


def test_markdown_tables_have_equally_many_cells(text: str) -> None:
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == 18
    for table in tables:
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(counts) == 1, table


def test_qdisc_trees() -> None:
    qdiscs: list[dict[str, Any]] = [
        {"kind": "htb", "handle": "5:", "dev": "a", "root": True, "options": {"default": "0x1"}},
        {
            "kind": "qjump",
            "handle": "6:",
            "dev": "a",
            "parent": "5:1",
            "options": {"budgets": [0, 10], "packets": [1000, 1000], "priomap": [0, 1]},
        },
        {"kind": "netem", "handle": "10:", "dev": "b", "root": True},
        {"kind": "ingress", "handle": "ffff:", "dev": "a", "parent": "ffff:fff1"},
    ]
    assert asbuilt.tree(qdiscs, "a").splitlines() == [
        "htb 5: root default 0x1",
        "    qjump 6: parent 5:1 bytes per epoch by priority 1:10 0:unlimited, packets 1000, "
        "priomap 0 1",
        "ingress ffff: parent ffff:fff1",
    ]
    assert asbuilt.tree(qdiscs, "c") == ""


def test_a_run_without_any_read_back_or_data(tmp_path: Path) -> None:
    run = synthetic.create(tmp_path, resolve.plan("fig3a", "smoke", []))
    pipeline.analyse(run.path)
    for name in ("report.html", "report.md"):
        content = (run.path / name).read_text()
        assert "There is no figure" in content
        assert "Nothing was read back." in content
        assert "9 of 9 trials are missing" in content
        assert content.count("NOT RUN") >= 8


def test_report_survives_a_damaged_read_back(tmp_path: Path, analysed: pipeline.Analysed) -> None:
    run = type(analysed.run)(tmp_path / "run")
    shutil.copytree(analysed.run.path, run.path)
    for folder in run.path.glob("trials/*/*/asbuilt/before"):
        (folder / "tc-h8.json").write_text("[{")
        (folder / "ip-h8.json").write_text('{"a": 1}')
        (folder / "tc-switches.json").write_text('["x", {}]')
    built = asbuilt.summary(run, analysed.manifest.plan)
    assert built is not None
    assert built.trees == ()
    document.write(run, analysed.manifest, analysed.outcome)


EVIL = (
    '<script>alert("x")</script> a|b',
    "<img src=x onerror=alert(1)>",
    "![seen](https://example.org/seen.png)",
    "[open](javascript:alert(1))",
    "[open][there]\n\n[there]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "```\n<b>\n```",
    "an odd ` backtick <b>",
    "\\![seen]\\(https://example.org) \\<b>",
    "2*3*4 _of_ **these** &lt; \\* \\\\",
)


@pytest.mark.parametrize("evil", EVIL)
def test_report_md_shows_a_strangers_words_as_words(
    evil: str, tmp_path: Path, analysed: pipeline.Analysed
) -> None:
    """No HTML but ours, and no link or picture that leads out of the run directory."""
    run = RunDirectory(shutil.copytree(analysed.run.path, tmp_path / "run"))
    named = "title question reproduces label about statement source predicate note text".split()

    def fields(value: Any, field: str = "") -> Any:
        """Every text of these names, wherever it stands, is evil."""
        if isinstance(value, str):
            return f"a {evil} b" if field in (*named, "message") else value
        if isinstance(value, dict):
            return {key: fields(entry, key) for key, entry in value.items()}
        return [fields(entry, field) for entry in value] if isinstance(value, list) else value

    plain = fields(msgspec.to_builtins(analysed.manifest))
    plain["plan"]["shown"]["remarks"] = [evil]
    manifest = msgspec.convert(plain, Manifest, dec_hook=registry.decode)
    outcome = msgspec.convert(fields(msgspec.to_builtins(analysed.outcome)), outcomes.Outcome)
    page, text = (path.read_text() for path in document.write(run, manifest, outcome))
    words = " ".join(f"a {evil} b".split())
    assert words in Reader(page).text
    assert not re.search(r"<(img|b|script)\b|href=.(https|javascript)", page)
    markdown = MarkdownIt("commonmark").enable("table")
    assert words in Reader(markdown.render(text)).text
    markdown.validateLink = lambda url: True  # type: ignore[method-assign]
    for token in markdown.parse(text):
        for one in (token, *(token.children or ())):
            if one.type in ("html_inline", "html_block"):
                assert re.fullmatch(
                    r'(</?(details|summary|br)>|<details (open|class="screen")>|[^<])+', one.content
                )
            for where in (one.attrs.get("src"), one.attrs.get("href")):
                assert where is None or re.match(
                    r"(fig|trials|timeline|notes|manifest|verdicts|#)", str(where)
                ), where


@pytest.mark.parametrize("verdict", list(formatting.MEANINGS))
def test_verdict_is_explained(
    verdict: outcomes.Verdict, tmp_path: Path, analysed: pipeline.Analysed
) -> None:
    rows = tuple(replace(row, verdict=verdict) for row in analysed.outcome.verdicts)
    run = type(analysed.run)(tmp_path)
    document.write(run, analysed.manifest, replace(analysed.outcome, verdicts=rows, drawings=()))
    for name in ("report.html", "report.md"):
        assert f"{verdict}: {formatting.MEANINGS[verdict]}." in (tmp_path / name).read_text()


def test_intervals_are_shown_with_what_varied(text: str, analysed: pipeline.Analysed) -> None:
    five = Spread.of({seed: float(seed) for seed in range(1, 6)})
    arms = tuple(
        replace(arm, measures={"ping": {"p50_ms": five}}) for arm in analysed.outcome.arms[:1]
    )
    rows = document.spread(analysed.manifest.plan, replace(analysed.outcome, arms=arms))
    assert rows == [("ping alone", "ping", "median, ms", "1: 1; 2: 2; 3: 3; 4: 4; 5: 5", "1 to 5")]
    assert (
        "2 replicates: seeds 1 to 2, which decide when programs start and what they draw. There are"
        in text
    )
    for many, sentence in (
        (1, "One replicate: nothing says how far its values would spread."),
        (
            4,
            "over seeds, by percentiles; of up to 5 seeds they are from the least to the greatest.",
        ),
        (6, "over seeds, by percentiles."),
    ):
        plan = resolve.plan("fig3a", "smoke", [], replicates=many)
        assert formatting.intervals(plan).endswith(sentence)


# Wording


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-1e-16, "0"),
        (47.844, "47.84"),
        (0.99227, "0.9923"),
        (-0.4296, "-0.4296"),
        (283.5, "283.5"),
        (1.0, "1"),
        (123456, "123456"),
        (1e13, "1e+13"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert formatting.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.7786, "0.779"), (2.3, "2.30"), (27.8, "27.8"), (113.4, "113"), (1234.5, "1234")],
)
def test_times(value: float, text: str) -> None:
    assert formatting.time(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1 / 3000, "0.033 %"), (0.012, "1.2 %"), (0.666, "66.6 %"), (1, "100.0 %")],
)
def test_percent(value: float, text: str) -> None:
    assert formatting.percent(value) == text


def priorities(plan: Plan, analysed: pipeline.Analysed) -> str:
    return " ".join(remarks.of(plan, analysed.outcome))


def test_a_job_that_got_nothing_done_is_told(analysed: pipeline.Analysed) -> None:
    plan, outcome = analysed.manifest.plan, analysed.outcome
    first, *others = outcome.arms

    def told(*rounds: float) -> list[str]:
        spread = Spread.of(dict(enumerate(rounds, 1)))
        arm = replace(first, measures={**first.measures, "bulk": {"rounds": spread}})
        changed = replace(outcome, arms=(arm, *others))
        return [text for text in remarks.of(plan, changed) if "completed no round" in text]

    assert (len(told(0)), told(3), told(3, 4)) == (1, [], [])
    assert first.label in told(0)[0] and "measured: " in told(0, 0)[0]
    assert "measured, in 2 of 3 replicates: " in told(0, 3, 0)[0]


def running(plan: Plan, arms: tuple[ArmPlan, ...]) -> Plan:
    return synthetic.altered(plan, run={"arms": arms})


def test_priorities_are_credited_only_when_due(analysed: pipeline.Analysed) -> None:
    plan = analysed.manifest.plan
    assert "may send 129.2 Mb/s a host, more than the link's 10 Mb/s" in priorities(plan, analysed)
    unlimited = {
        arm.name: replace(arm.qjump, budget_bytes=(0,) * 8) for arm in plan.arms if arm.qjump
    }
    arms = tuple(replace(arm, qjump=unlimited.get(arm.name)) for arm in plan.arms)
    assert "the bulk level has no limit" in priorities(running(plan, arms), analysed)
    for without in (["qjump", "qjump_drop"], ["priority_only"]):
        kept = tuple(arm for arm in plan.arms if arm.name not in without)
        assert "priorities" not in priorities(running(plan, kept), analysed)


@pytest.mark.parametrize(
    ("argv", "folder"),
    [
        (("qjump-mn", "run", "fig3a"), "results"),
        (("qjump-mn", "fig3a", "--out", "my runs", "--preset", "smoke"), "'my runs"),
        (("qjump-mn", "fig3a", "--out=/tmp/runs"), "/tmp/runs"),
    ],
)
def test_the_report_is_written_again_from_where_the_run_lies(
    argv: tuple[str, ...], folder: str, analysed: pipeline.Analysed
) -> None:
    *_, again = document.commands(analysed.run, replace(analysed.manifest, argv=argv))
    name = analysed.run.path.name
    assert again.rstrip("'") == f"qjump-mn report {folder}/{name}"


def test_what_is_printed_to_do_it_again_works(text: str, analysed: pipeline.Analysed) -> None:
    printed = text.split("## Do it again")[1].split("```")[1].strip().splitlines()
    commands = [shlex.split(line) for line in printed if not line.startswith("git checkout ")]
    assert [words[:2] for words in commands] == [["qjump-mn", "run"], ["qjump-mn", "report"]]
    # qjump-mn is what the bootstrap installs for this module. The run itself is left to the tests
    # of the guest.
    (_, *run), (_, *report) = commands
    for arguments, exit_code in (([*run, "--dry-run"], 0), (report, analysed.outcome.exit_code)):
        done = cli(*arguments, cwd=analysed.run.path.parents[1])
        assert done.returncode == exit_code, done.stderr
    assert f"run     {analysed.run.path}" in done.stdout


def test_the_clock_is_told(tmp_path: Path) -> None:
    run = synthetic.create(tmp_path, resolve.plan("fig3a", "smoke", []))
    pipeline.analyse(run.path)
    for name in ("report.html", "report.md"):
        assert "On the virtual clock code takes no time" in (run.path / name).read_text()


def test_captions_are_short_with_folded_details(page: str, analysed: pipeline.Analysed) -> None:
    for drawing in analysed.outcome.drawings:
        lead = original.lead(analysed.manifest, drawing)
        assert len(lead.split()) <= 40 and lead in Reader(page).text
    assert page.count("<summary>What is drawn, and from what</summary>") == len(
        analysed.outcome.drawings
    )


def test_every_cell_of_a_table_says_what_it_is(page: str) -> None:
    """Where the page is narrow there is no head to look at."""
    for table in re.findall(r'<table class="stack">.*?</table>', page, re.DOTALL):
        heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
        assert "<caption>" in table and heads
        for row in re.findall(r"<tr>\s*(<t[dh](?! scope=.col).*?)</tr>", table, re.DOTALL):
            assert re.findall(r'<td data-label="(.*?)"', row) in (heads, [])
    assert page.count('<table class="stack">') >= 5
    assert re.search(
        r'<th scope="row">topology</th>\s*<td>paper12: 12 hosts, 4 switches</td>', page
    )
    assert "<th>" not in page
