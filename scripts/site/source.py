#!/usr/bin/env python3
"""Writes the source of the documentation site: a folder from which mdBook builds.

    scripts/site/source.py PROGRAM FOLDER

The folder receives the pages of docs/, the pages of OTHER_PAGES, a page for each command of PROGRAM, and an overview of the
translation layers. Links between these pages become relative to the folder; links to other files of the repository become
addresses in the repository. Exit codes: 0 done, 1 a page is not in docs/SUMMARY.md.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import commands

ROOT = Path(__file__).resolve().parents[2]
# Pages whose place in the book is not their place below docs/, by their paths in the repository.
OTHER_PAGES = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "docs/schemas/README.md": "schemas/index.md",
    "CONTRIBUTING.md": "contributing.md",
    "ARCHITECTURE.md": "architecture.md",
}
# Parts of docs/ that are not pages: settings of mdBook, and runs that `imbrex reproduce` keeps.
NOT_PAGES = ["docs/book.toml", "docs/theme", "docs/reproduction/seeds"]
# Line of SUMMARY.md that the list of the pages of commands replaces.
COMMANDS_LINE = "<!-- pages of the commands -->"
LINK = re.compile(r"(`[^`]*`)|(\]\()([^)\s]+)(?=\))|(\b(?:href|src|srcset)=\")([^\"]+)(?=\")")
PICTURE = re.compile(
    r"<picture>\s*<source media=\"\(prefers-color-scheme: dark\)\" srcset=\"([^\"]+)\">\s*"
    r"<img alt=\"([^\"]*)\" src=\"([^\"]+)\">\s*</picture>"
)


def repository():
    """Returns the address of the repository, as Cargo.toml states it."""
    return re.search(r'^repository = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]


def files():
    """Returns the files of the book: the path in the repository, and the path in the book."""
    found = dict(OTHER_PAGES)
    for path in sorted((ROOT / "docs").rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.is_file() and not any(name == part or name.startswith(part + "/") for part in NOT_PAGES):
            found.setdefault(name, name.removeprefix("docs/"))
    return found


def rewritten_link(target, page, found, address):
    """Returns a link of a page as the book needs it. A link that leads nowhere stays, and the check of the site finds it."""
    file, hash_sign, anchor = target.partition("#")
    if re.match(r"[a-z]+:", target) or not file:
        return target
    name = os.path.normpath(os.path.join(os.path.dirname(page), file))
    if (ROOT / name).is_dir() and f"{name}/README.md" in found:
        name = f"{name}/README.md"
    if name in found:
        return os.path.relpath(found[name], os.path.dirname(found[page]) or ".") + hash_sign + anchor
    if not (ROOT / name).exists():
        return target
    return f"{address}/{'tree' if (ROOT / name).is_dir() else 'blob'}/main/{name}{hash_sign}{anchor}"


def rewritten(text, page, found, address):
    """Returns a page for the book. Lines of code blocks stay as they are."""

    def replaced(match):
        code, before_link, link, before_attribute, attribute = match.groups()
        if code:
            return code
        return (before_link or before_attribute) + rewritten_link(link or attribute, page, found, address)

    lines, in_code = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            in_code = not in_code
            # mdBook knows no language `console`.
            line = line.replace("```console", "```text")
        lines.append(line if in_code else LINK.sub(replaced, line))
    # The theme of the book, not that of the system, decides between light and dark pictures.
    return PICTURE.sub(
        r'<img class="if-light" alt="\2" src="\3">' + "\n" + r'<img class="if-dark" alt="\2" src="\1">', "\n".join(lines) + "\n"
    )


def overview_of_layers(program):
    """Returns the page that lists the translation layers, from the program's own list."""
    listed = subprocess.run([program, "list", "layers", "--json"], capture_output=True, text=True, check=True).stdout
    lines = [
        "# Translation layers",
        "",
        "This page lists the translation layers of Imbrex, with the kinds of recording that each supports and the paper that",
        "describes it. `imbrex list layers` prints the parameters of every layer.",
        "",
        "| layer | recordings | subject | source |",
        "|---|---|---|---|",
    ]
    for layer in json.loads(listed)["layers"]:
        name, recordings = layer["layer"], ", ".join(layer["recordings"])
        cells = [f"[`{name}`]({name}.md)", recordings, commands.escaped(layer["what_it_does"]), commands.escaped(layer["source"])]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def write(path, text):
    """Writes a file, and makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main(program, folder):
    """Writes the source of the site and returns the exit code."""
    book, address, found = Path(folder) / "src", repository(), files()
    found["docs/layers/README.md"] = "layers/index.md"
    pages = commands.pages(program)
    for name, place in found.items():
        if name == "docs/layers/README.md":
            write(book / place, overview_of_layers(program))
        elif name.endswith(".md"):
            write(book / place, rewritten((ROOT / name).read_text(), name, found, address))
        else:
            (book / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, book / place)
    for page in pages:
        write(book / page.path, page.text)
    summary = (book / "SUMMARY.md").read_text()
    summary = summary.replace(COMMANDS_LINE, "\n".join(commands.summary(pages)))
    write(book / "SUMMARY.md", summary)
    settings = (ROOT / "docs/book.toml").read_text().replace("REPOSITORY", address)
    write(Path(folder) / "book.toml", settings)
    shutil.copytree(ROOT / "docs/theme", Path(folder) / "theme")

    listed = set(re.findall(r"\]\(([^)\s]+)\)", summary))
    missing = [path for path in (page.relative_to(book).as_posix() for page in sorted(book.rglob("*.md"))) if path not in listed]
    missing.remove("SUMMARY.md")
    for path in missing:
        print(f"docs/SUMMARY.md: no line for the page {path}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: scripts/site/source.py PROGRAM FOLDER")
    sys.exit(main(sys.argv[1], sys.argv[2]))
