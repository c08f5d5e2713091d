#!/usr/bin/env python3
"""Checks that each link and each path that a page names exists.

    scripts/links.py        checks every page and the `//!` headers and doc comments of every crate

Links: `[text](path#anchor)`; the file, and in pages the heading, must exist. Paths: words in backticks that begin with a folder of the
repository or of `crates/`, as `crates/fs/src/core` or `fs/src/core/write_back/room.rs`. A path with a word in capitals, such as NAME, is a pattern: its
folder must exist. Exit codes: 0 all exist, 1 some do not.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOPS = [path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".") and path.name not in ("target", "out")]
CRATES = [path.name for path in (ROOT / "crates").iterdir() if path.is_dir()]
PATH = re.compile(r"`((?:" + "|".join(sorted(TOPS + CRATES)) + r")/[\w./-]*[\w/])`")


def anchors(page):
    """Returns the anchors of the headings of a page, as GitHub makes them."""
    found = []
    for line in re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S).splitlines():
        if line.startswith("#"):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip()).lower()
            anchor = re.sub(r"[^\w\s-]", "", text).replace(" ", "-")
            count = sum(1 for one in found if re.fullmatch(re.escape(anchor) + r"(-\d+)?", one))
            found.append(f"{anchor}-{count}" if count else anchor)
    return found


def exists(path, page):
    """Returns whether a path that a page names exists, from the root, from `crates/`, or from the page's own crate."""
    parts = path.split("/")
    pattern = next((number for number, part in enumerate(parts) if re.search(r"[A-Z]{3,}", part)), None)
    if pattern is not None and not any((base / path).exists() for base in (ROOT, ROOT / "crates")):
        path = "/".join(parts[:pattern])
    bases = [ROOT, ROOT / "crates", page.parent]
    return any((base / path).exists() or (base / f"{path}.rs").exists() for base in bases)


def check(name):
    """Returns the missing links and paths of a page or a Rust file."""
    page, missing = ROOT / name, []
    # A link to a page is checked at its own place.
    if page.is_symlink():
        return missing
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if name.endswith(".rs") and not line.strip().startswith(("//!", "///")):
            continue
        for path in PATH.findall(line):
            if not exists(path, page):
                missing.append(f"{name}:{number}: `{path}` does not exist")
        if name.endswith(".rs"):
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            at = (page.parent / file).resolve() if file else page
            if not at.exists():
                missing.append(f"{name}:{number}: the link to {target} leads nowhere")
            elif anchor and at.suffix == ".md" and anchor not in anchors(at):
                missing.append(f"{name}:{number}: {at.relative_to(ROOT)} has no heading #{anchor}")
    return missing


def main():
    """Checks all files and returns the exit code."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md", "*.rs"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        print("skipped: links of pages (this is no git checkout)")
        return 0
    missing = [line for name in listed.stdout.split() if (ROOT / name).exists() for line in check(name)]
    print("\n".join(missing) if missing else "links: all exist", file=sys.stderr if missing else sys.stdout)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
