#!/usr/bin/env python3
"""Checks the wording of doc comments, messages and pages.

    scripts/words.py              checks every file outside the folders of scripts/words-pending.txt
    scripts/words.py PATH…        checks these files and folders, pending or not
    scripts/words.py --count      counts the findings of each folder, pending ones too

Prints `FILE:LINE: RULE: TEXT` for each finding. Exit codes: 0 nothing found, 1 findings, 2 wrong arguments.

Messages are string literals of more than one word outside of tests.

Rules:
- `phrase`: a phrase of PHRASES: a riddle, a metaphor, or a pronoun without its noun.
- `clause`: a clause that begins with "what" or "who" stands in place of a noun.
- `verb`: the doc comment of a function does not begin with a verb in the third person ("Returns", "Writes"). Tests are exempt.
- `opening`: the doc comment of another item begins with a word that needs a noun before it ("What", "It", "The same"). Tests are exempt.
- `length`: a sentence of more than 40 words.
- `pending`: scripts/words-pending.txt has an entry that it did not have in an earlier commit, or one that does not exist.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PENDING = "scripts/words-pending.txt"
SENTENCE_WORDS = 40

# Each phrase with the reason against it. Case is ignored; the text is one paragraph without line breaks.
PHRASES = [
    (r"\bwhoever\b", "name who it is: a caller, a task, a user"),
    (r"\bthe same,", "name the other item: Like [`write`]; …"),
    (r"(?:^|[.;:] )the same (?:as|for|of|but|with|where|without|on|in)\b", "name the other item: Like [`write`]; …"),
    (r"\bgoes? alone\b", "say what it does without which other thing"),
    (r"\bin hand\b", "say where it is: in memory, held, in progress"),
    (r"\bsees? to it\b", "ensures"),
    (r"\blets? (?:it |them |its \w+ |the \w+ )?go\b", "releases, unmounts, drops"),
    (r"\blets? (?:it|them|those \w+|the \w+|\w+) leave\b", "evicts, removes"),
    (r"\b(?:is|are|was|were) told\b", "say which function or message passes which value"),
    (r"\bcomes? (?:back|of age|by)\b", "returns, matures"),
    (r"\bas it is on\b", "say which bytes are equal"),
    (r"\bmeans nothing\b", "is undefined, is ignored"),
    (r"\bmean nothing\b", "are undefined, are ignored"),
    (r"\bmade good\b|\bmakes? good\b", "reconstructs, repairs"),
    (r"\bmade again\b|\bmakes? again\b", "reconstructs, rebuilds"),
    (r"\bstands? again\b", "is repeated"),
    (r"\bis spent\b|\bwas spent\b", "is used"),
    (r"\bnobody's\b", "free, unowned"),
    (r"\ba while ago\b|\bfor a while\b", "give the time or the condition"),
]
# A clause with one of these words in place of a noun is a riddle. After a verb of ASKING it is a question, and plain.
CLAUSE = re.compile(r"\b(what|who)\b(?![^.]*\?)", re.IGNORECASE)
ASKING = re.compile(
    r"(?:say|says|said|show|shows|shown|know|knows|tell|tells|ask|asks|asked|decide|decides|explain|explains|list|lists|describe|describes|see|"
    r"check|checks|find out|finds out|learn|learns|state|states|name|names|and|or|of) $"
)
# Words with which the doc comment of an item that is no function must not begin.
OPENINGS = re.compile(r"(?:What|Who|Whoever|Whose|It|They|Them|These|Those|That|Such|Of|The same|So|And|But|As)\b")
# Verbs in the third person end with s. These nouns and others do, too.
NOT_VERBS = {
    "Access", "Address", "Addresses", "Always", "As", "Bands", "Bits", "Blocks", "Bytes", "Class", "Extents", "Files", "Its", "Less",
    "Names", "Options", "Pages", "Plus", "Pieces", "Places", "Requests", "Seconds", "Sectors", "This", "Tracks", "Units",
    "Us", "Various", "Words", "Zones",
}
VERB_BEGINNINGS = re.compile(r"(?:Like|Does|Do not|Always|Never|Also|Only|Then|Asynchronously)\b")


@dataclass
class Block:
    """Consecutive comment lines, or a paragraph of a page."""

    line: int
    text: str
    # "fn", "item", "module", "page", "comment", "message"
    kind: str


def paragraphs(lines, first, kind):
    """Splits lines of Markdown into blocks of one paragraph, list item or table row each. Skips code and tables' rulers."""
    blocks, text, start, in_code = [], [], first, False

    def end():
        if text:
            blocks.append(Block(start, " ".join(text), kind))
            text.clear()

    for number, line in enumerate(lines, first):
        stripped = line.strip()
        if stripped.startswith("```"):
            in_code = not in_code
            end()
        elif in_code or re.fullmatch(r"[|\s:-]*", stripped) or stripped.startswith("#"):
            end()
        elif stripped.startswith("|"):
            end()
            for cell in stripped.strip("|").split(" | "):
                blocks.append(Block(number, cell.strip(), "cell"))
        else:
            if re.match(r"(?:[-*]|\d+\.) ", stripped):
                end()
            if not text:
                start = number
            text.append(re.sub(r"^(?:[-*>]|\d+\.) ", "", stripped))
    end()
    return blocks


ITEM = re.compile(
    r"(?P<public>pub(?:\([^)]*\))? )?(?:default |const |async |unsafe |extern \"C\" )*"
    r"(?P<kind>fn|struct|enum|trait|type|const|static|mod|union|macro_rules!)\b"
)


def rust_blocks(path):
    """Returns the doc comments, inner comments and messages of a Rust file."""
    lines, blocks, number = path.read_text().splitlines(), [], 0
    while number < len(lines):
        line = lines[number].strip()
        mark = next((mark for mark in ("//!", "///", "//") if line.startswith(mark)), None)
        if mark is None:
            code = re.sub(r"\s//\s.*$", "", line)
            for found in re.findall(r'"((?:[^"\\]|\\.){30,})"', code):
                if " " in found:
                    blocks.append(Block(number + 1, found, "message"))
            number += 1
            continue
        first = number
        while number < len(lines) and lines[number].strip().startswith(mark) and (
            mark != "//" or not lines[number].strip().startswith(("///", "//!"))
        ):
            number += 1
        text = [line.strip()[len(mark) :] for line in lines[first:number]]
        kind = {"//!": "module", "//": "comment"}.get(mark, "item")
        if mark == "///":
            after = number
            while after < len(lines) and re.match(r"\s*(?:#|//[^/!]|\)\])", lines[after]):
                after += 1
            item = ITEM.match(lines[after].strip()) if after < len(lines) else None
            kind = "fn" if item and item["kind"] == "fn" else "item"
        found = paragraphs(text, first + 1, "module" if kind == "module" else "comment")
        if found and kind in ("fn", "item"):
            found[0].kind = kind
        blocks.extend(found)
    return blocks


def findings(path):
    """Returns the findings of a file, each with its line, rule and text."""
    if path.suffix == ".rs":
        blocks = rust_blocks(path)
    elif path.suffix == ".md":
        blocks = paragraphs(path.read_text().splitlines(), 1, "page")
    else:
        return []
    found = []
    in_tests = "/tests/" in str(path) or path.name.endswith("tests.rs")
    tests_at = re.search(r"^#\[cfg\(test\)\]\nmod \w+ \{", path.read_text(), re.MULTILINE)
    first_test = path.read_text()[: tests_at.start()].count("\n") + 1 if tests_at else sys.maxsize
    for block in blocks:
        is_test = in_tests or block.line > first_test
        if block.kind == "message" and is_test:
            continue
        text = re.sub(r"`[^`]*`|\{\w*\}|(?<=\])\([^)]*\)|[\w/-]+\.md\b", "`x`", block.text)
        for phrase, reason in PHRASES:
            match = re.search(phrase, text, re.IGNORECASE)
            if match:
                found.append((block.line, "phrase", f"“{match.group().strip(' .;:')[:60]}”: {reason}"))
        for match in CLAUSE.finditer(text):
            is_question = ASKING.search(text[: match.start()]) or block.kind == "cell" and match.start() == 0
            if not is_question and not re.match(r"what to ", text[match.start() :]) and (match.group().lower() == "what" or match.start() == 0):
                found.append((block.line, "clause", f"“{text[match.start() :][:50]}…”: use a noun: unreadable sectors, not: what cannot be read"))
        word = (re.match(r"[A-Za-z']+", text) or [""])[0]
        if block.kind == "fn" and not is_test and (not word.endswith("s") or word in NOT_VERBS) and not VERB_BEGINNINGS.match(text):
            found.append((block.line, "verb", text[:80]))
        if block.kind == "item" and not is_test and OPENINGS.match(text):
            found.append((block.line, "opening", text[:80]))
        if block.kind != "message":
            for sentence in re.split(r"(?<=[.!?])[)\"”]?\s|: |; ", text):
                if len(sentence.split()) > SENTENCE_WORDS:
                    found.append((block.line, "length", f"{len(sentence.split())} words: {sentence[:60]}…"))
    return found


def git(*words):
    """Returns the output of a git command, or nothing if it fails."""
    run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else ""


def entries(text):
    """Returns the entries of a pending list."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def list_findings():
    """Returns what is wrong with the pending list itself."""
    found, current = [], entries((ROOT / PENDING).read_text())
    for revision in ("HEAD", "HEAD^"):
        before = git("show", f"{revision}:{PENDING}")
        if before:
            found += [f"{PENDING}:1: pending: {entry} is new; the list may only shrink" for entry in current if entry not in entries(before)]
    found += [f"{PENDING}:1: pending: {entry} does not exist; remove it" for entry in current if not (ROOT / entry).exists()]
    return list(dict.fromkeys(found))


def files(under):
    """Returns the tracked Rust files and pages under `under`."""
    names = git("ls-files", "--cached", "--others", "--exclude-standard", "--", *under).splitlines()
    # Reports that the program writes.
    written = re.compile(r"docs/reproduction/|docs/reproduction\.md|docs/figures/")
    return [name for name in names if name.endswith((".rs", ".md")) and not written.match(name) and (ROOT / name).exists()]


def folder(name):
    """Returns the folder to which `--count` adds the findings of a file."""
    parts = name.split("/")
    return "/".join(parts[: 3 if parts[0] == "crates" else 2][:-1] or parts[:1]) if len(parts) < 4 else "/".join(parts[:3])


def main(words):
    """Runs the command line `words` and returns the exit code."""
    if words == ["--count"]:
        counts = {}
        for name in files(["."]):
            counts.setdefault(folder(name), []).append(len(findings(ROOT / name)))
        for place, each in sorted(counts.items()):
            print(f"{sum(each):6}  {place}")
        return 0
    if any(word.startswith("-") for word in words):
        print(__doc__, file=sys.stderr)
        return 2
    missing = [word for word in words if not Path(word).exists()]
    if missing:
        print(f"{missing[0]}: no such file or folder", file=sys.stderr)
        return 2
    if not git("rev-parse", "HEAD"):
        print("skipped: wording (this is no git checkout)")
        return 0
    pending = [] if words else entries((ROOT / PENDING).read_text())
    names = files([str(Path(word).resolve().relative_to(ROOT)) for word in words] or ["."])
    lines = [] if words else list_findings()
    for name in names:
        if not any(name == entry or name.startswith(entry.rstrip("/") + "/") for entry in pending):
            lines += [f"{name}:{line}: {rule}: {text}" for line, rule, text in findings(ROOT / name)]
    print("\n".join(lines) if lines else "words: nothing found", file=sys.stderr if lines else sys.stdout)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
