#!/usr/bin/env python3
"""Checks that each internal link, anchor and image of a built site exists.

    scripts/site/check.py FOLDER

Prints a line for each missing target. Links to other sites are not opened. Exit codes: 0 all exist, 1 some do not.
"""

import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

# Attributes that hold an address.
ADDRESSES = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "srcset", "iframe": "src"}


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Notes the anchors and the links of a tag."""
        attributes = dict(attrs)
        self.anchors.update(attributes[key] for key in ("id", "name") if attributes.get(key))
        address = attributes.get(ADDRESSES.get(tag))
        if address:
            self.links.append((self.getpos()[0], address))


def check(site):
    """Returns the number of checked links, and a line for each link that leads nowhere."""
    pages = {path.relative_to(site).as_posix(): Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    count, missing = 0, []
    for name, page in pages.items():
        for line, address in page.links:
            if re.match(r"[a-z]+:|//", address):
                continue
            count += 1
            file, _, anchor = unquote(address).partition("#")
            file = file.partition("?")[0]
            target = os.path.normpath(os.path.join(os.path.dirname(name), file)) if file else name
            if (site / target).is_dir():
                target = os.path.normpath(os.path.join(target, "index.html"))
            if not (site / target).is_file():
                missing.append(f"{name}:{line}: {address} leads nowhere")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                missing.append(f"{name}:{line}: {target} has no anchor #{anchor}")
    return count, missing


def main(folder):
    """Checks the site and returns the exit code."""
    site = Path(folder)
    if not (site / "index.html").is_file():
        print(f"{site} has no index.html: it is not a built site", file=sys.stderr)
        return 1
    count, missing = check(site)
    for line in missing:
        print(line, file=sys.stderr)
    if missing:
        print(f"site: of {count} internal links, {len(missing)} lead nowhere", file=sys.stderr)
        return 1
    print(f"site: {count} internal links, all exist")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: scripts/site/check.py FOLDER")
    sys.exit(main(sys.argv[1]))
