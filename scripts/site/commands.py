"""Makes the reference of the command line for the documentation site, from the help that the program prints.

A command has one page; its subcommands are sections of that page. Limits: the help must be that of the library `clap`. Its parts
are a description, a line that begins with `Usage:`, and parts with headings in column 0. An entry of a part begins in column 2,
or in column 6 if it is an option without a short form.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
# Lines of the help end at this width.
WIDE = {**os.environ, "COLUMNS": "100"}
HEADING = re.compile(r"([A-Z][^:]*):$")
# Pages of docs/ that describe a command.
DESCRIBED_IN = {
    "simulate": ["simulate.md", "options.md"],
    "sweep": ["simulate.md#sweeps"],
    "trace": ["traces.md"],
    "drive": ["drive.md"],
    "serve": ["serve.md", "ublk.md"],
    "fs": ["fs/guide.md", "fs/operations.md", "fs/bench.md"],
    "validate": ["validation.md"],
    "fit": ["validation.md"],
    "probe": ["probe.md", "is-my-drive-shingled.md"],
    "reproduce": ["reproduction.md"],
}


@dataclass
class Help:
    """Help of one command."""

    # Words after the program's name: `drive`, `fault`.
    words: list
    description: list
    usage: str
    # Heading and lines of each further part.
    parts: dict
    subcommands: list


@dataclass
class Page:
    """Page of the reference."""

    path: str
    title: str
    text: str


def escaped(text):
    """Returns plain text as Markdown: text in backticks stays code, options become code, other characters stand for themselves."""
    parts = re.split(r"(`[^`]*`|(?<![\w-])--[a-z][a-z-]*)", text)
    return "".join(
        part if part.startswith("`") else f"`{part}`" if part.startswith("--") else re.sub(r"([\\`*_\[\]<>|~&#])", r"\\\1", part)
        for part in parts
    )


def entries(lines):
    """Returns the entries of a list of arguments or options: the term, and the lines of its description."""
    found = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.strip() and (indent == 2 or (indent == 6 and line.lstrip().startswith("--"))):
            term, _, rest = line.strip().partition("  ")
            # A short form precedes the long one by a comma and one blank, so two blanks end the term.
            found.append((term, [rest.strip()] if rest.strip() else []))
        elif found:
            found[-1][1].append(line.strip())
    return found


def paragraphs(lines):
    """Returns lines as Markdown paragraphs and lists."""
    blocks = [[]]
    for line in lines:
        if not line.strip():
            blocks.append([])
        elif line.startswith("- "):
            if blocks[-1] and not blocks[-1][-1].startswith("- "):
                blocks.append([])
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks[-1][-1] += " " + line
        else:
            blocks[-1].append(line)
    return [
        "\n".join("- " + escaped(re.sub(r":\s+", ": ", line[2:], count=1)) if line.startswith("- ") else escaped(line) for line in block)
        for block in blocks
        if block
    ]


def read(program, words):
    """Returns the help of a command and of its subcommands."""
    text = subprocess.run([program, *words, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, env=WIDE).stdout
    description, found, usage = text.partition("Usage: ")
    if not found:
        raise ValueError(f"the help of `imbrex {' '.join(words)}` has no line `Usage:`")
    parts, current = {}, None
    usage, *lines = usage.splitlines()
    for line in lines:
        if match := HEADING.match(line):
            current = parts.setdefault(match[1], [])
        elif current is not None:
            current.append(line)
    names = [match[1] for line in parts.pop("Commands", []) if (match := re.match(r"  (\S+)  ", line)) and match[1] != "help"]
    return Help(words, description.splitlines(), usage, parts, [read(program, [*words, name]) for name in names])


def definition(term, lines):
    """Returns an entry of a list of definitions."""
    blocks = paragraphs(lines) or ["–"]
    return f"`{term}`\n: " + "\n\n".join(blocks).replace("\n", "\n  ").replace("\n  \n", "\n\n") + "\n"


def first(help_):
    """Returns the first paragraph of a description, without the full stop that only long descriptions have."""
    return paragraphs(help_.description)[0].rstrip(".")


def title(page):
    """Returns the heading of a page of docs/."""
    path = DOCS / page.partition("#")[0]
    return path.read_text().partition("\n")[0].removeprefix("# ")


def section(help_, level):
    """Returns the section of a command, with sections for its subcommands."""
    name = " ".join(["imbrex", *help_.words])
    blocks = [f"{'#' * level} `{name}`", *paragraphs(help_.description)]
    if level == 1 and help_.words[0] in DESCRIBED_IN:
        links = ", ".join(f"[{title(page)}](../{page})" for page in DESCRIBED_IN[help_.words[0]])
        blocks.append(f"Described in: {links}.")
    blocks.append(f"```text\n{help_.usage}\n```")
    if help_.subcommands:
        blocks.append("**Subcommands**")
        links = [(" ".join(sub.words[len(help_.words) :]), "-".join(["imbrex", *sub.words]), sub) for sub in help_.subcommands]
        blocks.append("\n".join(f"- [`{word}`](#{anchor}): {first(sub)}" for word, anchor, sub in links))
    for heading, lines in help_.parts.items():
        listed = [(term, text) for term, text in entries(lines) if not term.endswith("--help")]
        if listed:
            blocks.append(f"**{heading}**")
            blocks.append("\n".join(definition(term, text) for term, text in listed))
    return "\n\n".join(blocks + [section(sub, level + 1) for sub in help_.subcommands])


def index(help_):
    """Returns the page that lists all commands."""
    blocks = [
        "# Command line",
        "The pages of this part are made from the help of the program `imbrex`: `imbrex COMMAND --help` prints the same text. "
        "The page [options](../options.md) says which option applies to which input, and [consent](../consent.md) which files and "
        "devices a command refuses to overwrite.",
        f"```text\n{help_.usage}\n```",
        "| command | does |\n|---|---|\n"
        + "\n".join(f"| [`imbrex {sub.words[0]}`]({sub.words[0]}.md) | {first(sub)} |" for sub in help_.subcommands),
    ]
    for heading, lines in help_.parts.items():
        blocks.append(f"## {heading}")
        blocks.append("\n".join(definition(term, text) for term, text in entries(lines)))
    return "\n\n".join(blocks) + "\n"


def pages(program):
    """Returns the pages of the reference, that of all commands first."""
    help_ = read(program, [])
    found = [Page("commands/index.md", "All commands", index(help_))]
    for sub in help_.subcommands:
        found.append(Page(f"commands/{sub.words[0]}.md", f"imbrex {sub.words[0]}", section(sub, 1) + "\n"))
    return found


def summary(found):
    """Returns the lines of SUMMARY.md for the pages."""
    first, *others = found
    return [f"- [{first.title}]({first.path})", *(f"  - [{page.title}]({page.path})" for page in others)]
