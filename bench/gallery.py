"""Write the gallery, docs/gallery.md, from the pages of figures: each page's first picture with its
title and the numbers of its verdicts.

    python3 bench/gallery.py [--write]

Without `--write`, print the text. On the site, docs/conf.py shows thumbnails instead of the
pictures themselves.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import figures, marks

PAGE = ROOT / "docs/gallery.md"
THUMBNAILS = "_images/thumbnails"
"""Their folder below the site's."""
WIDTH = 480
"""Of a thumbnail, in pixels: twice that on the page, for fine screens."""

_PICTURE = re.compile(r"^!\[[^\]]*\]\(([^)]+)\)", re.MULTILINE)
_ON_THE_SITE = re.compile(r'(<img [^>]*src="[^"]*)_images/([^"/]+)"')


def text(pages: Mapping[str, str]) -> str:
    """Return a list with an entry for each page of figures that has a picture."""
    return "\n".join(
        f"- [![](figures/{picture[1]}) {figures.title(page)}](figures/{name}.md)\n"
        f"  {figures.verdicts(page)}"
        for name, page in pages.items()
        if (picture := _PICTURE.search(page))
    )


def with_thumbnails(body: str) -> str:
    """Return the page's HTML with the thumbnails in the place of the pictures."""
    return _ON_THE_SITE.sub(rf'\1{THUMBNAILS}/\2" loading="lazy"', body)


def write_thumbnails(site: Path) -> None:
    """Shrink the pictures of the page into the site's folder."""
    from PIL import Image  # the tests of the text need none

    (site / THUMBNAILS).mkdir(parents=True, exist_ok=True)
    for name in re.findall(r"!\[\]\(figures/([^)]+)\)", PAGE.read_text()):
        with Image.open(figures.PAGES / name) as picture:
            picture.thumbnail((WIDTH, WIDTH))
            picture.save(site / THUMBNAILS / name, optimize=True)


def main(arguments: list[str]) -> int:
    """Print or write the text; return the exit code."""
    if arguments not in ([], ["--write"]):
        print(__doc__, file=sys.stderr)
        return 2
    made = text(dict(figures.written()))
    if arguments:
        marks.write(PAGE, "gallery", made)
    else:
        print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
