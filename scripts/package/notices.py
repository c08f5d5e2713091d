#!/usr/bin/env python3
"""Prints the licences of the libraries that a package contains: for each its name, version, licence, and licence files.

Usage: notices.py TARGET PACKAGE…, such as x86_64-unknown-linux-musl imbrex-cli
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")


def output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(roots: list[str], target: str) -> list[dict]:
    """Returns the packages of others that `roots` are linked with on `target`, in order of name."""
    document = json.loads(output("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target))
    packages = {package["id"]: package for package in document["packages"]}
    nodes = {node["id"]: node for node in document["resolve"]["nodes"]}
    found: set[str] = set()
    waiting = [id for id, package in packages.items() if package["name"] in roots]
    if len(waiting) != len(roots):
        sys.exit(f"notices.py: not all of {roots} are packages of this workspace")
    while waiting:
        id = waiting.pop()
        if id not in found:
            found.add(id)
            normal = lambda dependency: any(kind["kind"] is None for kind in dependency["dep_kinds"])
            waiting += [dependency["pkg"] for dependency in nodes[id]["deps"] if normal(dependency)]
    foreign = [packages[id] for id in found if packages[id]["source"] is not None]
    return sorted(foreign, key=lambda package: (package["name"], package["version"]))


def texts(folder: Path) -> list[str]:
    """Returns the texts of the licence files in a folder and below it, where crates keep libraries in C; each text once."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name.upper().startswith(NAMES))
    return list(dict.fromkeys(path.read_text(errors="replace").strip() for path in files if path.suffix not in (".rs", ".json")))


def main() -> None:
    target, *roots = sys.argv[1:]
    packages = linked(roots, target)
    print("This package contains these libraries. Their licences follow, each with the names of its libraries.\n")
    by_text: dict[str, list[str]] = {}
    for package in packages:
        print(f"  {package['name']} {package['version']}: {package['license'] or 'see its licence file'}")
        for text in texts(Path(package["manifest_path"]).parent):
            by_text.setdefault(text, []).append(f"{package['name']} {package['version']}")
    rust = Path(output("rustc", "--print", "sysroot").strip()) / "share/doc/rust"
    version = output("rustc", "--version").split()[1]
    print(f"  the standard library of Rust {version}: MIT OR Apache-2.0, and those of its parts")
    for name in ("COPYRIGHT-library.html", "COPYRIGHT"):
        if (rust / name).exists():
            by_text[(rust / name).read_text(errors="replace").strip()] = [f"the standard library of Rust {version}"]
            break
    else:
        sys.exit(f"notices.py: {rust} has no COPYRIGHT-library.html: install Rust with rustup")
    if target.endswith("musl"):
        print("  musl: MIT")
        tools = output("scripts/package/tools.sh").strip()
        copyright = next(Path(tools).parent.glob("lib/python3*/site-packages/ziglang/lib/libc/musl/COPYRIGHT"))
        by_text[copyright.read_text(errors="replace").strip()] = ["musl"]
    for text, names in by_text.items():
        print(f"\n{'=' * 100}\n{', '.join(names)}\n{'=' * 100}\n\n{text}")


main()
