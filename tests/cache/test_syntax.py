"""What of a source file counts: a comment, a docstring and formatting do not, any other token
does."""

from __future__ import annotations

from pathlib import Path

import pytest

from qjump_mn import syntax

SAME = {
    "comment.py": ("x = 1\n", "# why\nx = 1  # so\n"),
    "docstrings.py": (
        'def f():\n    """One."""\n    return 1\nX = 1\n"""It."""\n',
        'def f():\n    """Two."""\n\n    return (1)\nX = 1\n"""That."""\n',
    ),
    "comment.c": ("int a = 1;\n", "/* of\n   a */ int\n\ta   = 1; // so\n"),
    "continued.c": ("#define A \\\n  1\nint a;\n", "#define A 1 // a \\\n  comment\nint a;\n"),
    "quoted.c": ('char *a = "/* no */";\n', 'char *a =\n\t"/* no */"; /* yes */\n'),
    "documented.rs": ("fn a() {}\n", "/// What /* it */ does.\nfn a() { }\n"),
    "nested.rs": ("let a = 1;\n", "/* one /* two */ one */ let a = 1;\n"),
    "lifetime.rs": (
        "fn a<'a>(b: &'a str) { c('x', '\\'') }\n",
        "fn a<'a>(b: &'a str)\n{ c('x', '\\'') } // '\n",
    ),
    "raw.rs": ('a(r#"" // no"#);\n', 'a(r#"" // no"#); // yes\n'),
    "wrapped.rs": ("f(a, b);\n", "f(\n    a,\n    b,\n);\n"),
    "lines.sh": (
        "#!/bin/sh\nif a; then\nb\nfi\n",
        "#!/bin/sh\n# Why.\nif a; then\n    b # so\nfi\n",
    ),
    "Makefile": ("a:\n\tb\n", "# Why.\na: # so\n\tb\n\n"),
    "config": ("CONFIG_A=y\n", "# Why.\nCONFIG_A=y\n"),
    "values.toml": ("[a]\nb = 1\n", "# Why.\na = { b = 1 }\n"),
    "manual.8": (".TH A 8\n", ".TH B 8\n"),
    "message.patch": (
        "Why.\n\ndiff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1,1 +1,1 @@ one\n-a;\n+b;\n-- "
        "\n2.1\n",
        "Else.\n\ndiff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -8,3 +9,4 @@ two\n  * x "
        "*/\n-a;\n+/* c */\n+b;\n",
    ),
}
OTHER = {
    "code.py": ("x = 1\n", "x = 2\n"),
    "string.py": ('x = "a"\n', 'x = "b"\n'),
    "nesting.py": ("if a:\n    b\n    c\n", "if a:\n    b\nc\n"),
    "token.c": ("a + +b;\n", "a ++b;\n"),
    "directive.c": ("#define A\nint b;\n", "#define A int b;\n"),
    "string.c": ('a("b  c");\n', 'a("b c");\n'),
    "comment.c": ("/* // */ a;\n", "/* */ b; // a;\n"),
    "lifetime.rs": ("fn a<'a>() { 'b' }\n", "fn a<'a>() { 'c' }\n"),
    "raw.rs": ('a(r#"" // b"#);\n', 'a(r#"" // c"#);\n'),
    "string.sh": ("a '\n b\n'\n", "a '\nb\n'\n"),
    "document.sh": ("a <<E\n# b\nE\n", "a <<E\n# c\nE\n"),
    "config": ("# CONFIG_A is not set\n", "# CONFIG_B is not set\n"),
    "values.toml": ("a = 1\n", "a = 1.0\n"),
    "change.patch": (
        "diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1,1 +1,1 @@\n-a;\n+b;\n",
        "diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1,1 +1,1 @@\n-a;\n+c;\n",
    ),
    "any.txt": ("# a\n", "# b\n"),
}


def reduced(folder: Path, name: str, texts: tuple[str, str]) -> list[str]:
    made = []
    for text in texts:
        (folder / name).write_text(text)
        made.append(syntax.reduced(folder / name))
    return made


@pytest.mark.parametrize("name", SAME)
def test_reduced_ignores_prose_and_formatting(name: str, tmp_path: Path) -> None:
    one, other = reduced(tmp_path, name, SAME[name])
    assert one == other


@pytest.mark.parametrize("name", OTHER)
def test_reduced_keeps_every_other_token(name: str, tmp_path: Path) -> None:
    one, other = reduced(tmp_path, name, OTHER[name])
    assert one != other
