#!/usr/bin/env python3
"""Prints the licences of the libraries that a package contains: for each its name, version, licence, and licence files.

Usage: notices.py PACKAGE TARGET, such as imbrex-cli x86_64-unknown-linux-musl
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")


def linked(root: str, target: str) -> list[dict]:
    """Returns the packages that `root` is linked with on `target`, itself not included, in order of name."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    document = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in document["packages"]}
    nodes = {node["id"]: node for node in document["resolve"]["nodes"]}
    found: set[str] = set()
    waiting = [id for id, package in packages.items() if package["name"] == root]
    while waiting:
        id = waiting.pop()
        if id not in found:
            found.add(id)
            normal = lambda dependency: any(kind["kind"] is None for kind in dependency["dep_kinds"])
            waiting += [dependency["pkg"] for dependency in nodes[id]["deps"] if normal(dependency)]
    foreign = [packages[id] for id in found if packages[id]["source"] is not None]
    return sorted(foreign, key=lambda package: (package["name"], package["version"]))


def texts(package: dict) -> list[str]:
    """Returns the texts of the licence files of a package, each once."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.upper().startswith(NAMES))
    return list(dict.fromkeys(path.read_text(errors="replace").strip() for path in files))


def main() -> None:
    root, target = sys.argv[1:]
    packages = linked(root, target)
    if not packages:
        sys.exit(f"notices.py: {root} has no libraries for {target}: is the name right?")
    print(f"{root} contains these libraries. Their licences follow, each with the names of its libraries.\n")
    for package in packages:
        print(f"  {package['name']} {package['version']}: {package['license'] or 'see its licence file'}")
    by_text: dict[str, list[str]] = {}
    for package in packages:
        for text in texts(package):
            by_text.setdefault(text, []).append(f"{package['name']} {package['version']}")
    for text, names in by_text.items():
        print(f"\n{'=' * 100}\n{', '.join(names)}\n{'=' * 100}\n\n{text}")


main()
