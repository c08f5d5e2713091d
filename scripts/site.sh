#!/usr/bin/env bash
# Builds the documentation site from docs/ with mdBook, and checks its links.
# Usage: scripts/site.sh FOLDER
#   IMBREX=PATH  program whose help becomes the reference of the command line; without it, `make build` builds one
# mdBook of the version below is taken from the search path, or built below the target folder.
set -euo pipefail
[ "$#" -eq 1 ] || {
    echo "usage: scripts/site.sh FOLDER" >&2
    exit 2
}
site=$(realpath -m "$1")
program=${IMBREX:+$(realpath "$IMBREX")}
cd "$(dirname "$0")/.."

version=0.5.4
target=${CARGO_TARGET_DIR:-target}
tools=$target/site-tools
has_version() { [ "$("$1" --version 2>/dev/null)" = "mdbook v$version" ]; }
if has_version mdbook; then
    mdbook=mdbook
else
    mdbook=$tools/bin/mdbook
    has_version "$mdbook" || {
        echo "imbrex: building mdbook $version into $tools (cargo); this takes some minutes" >&2
        cargo install --quiet --locked --version "$version" --root "$tools" mdbook || {
            echo "imbrex: cargo cannot build mdbook: see above; a network is needed" >&2
            exit 1
        }
    }
fi
[ -n "$program" ] || {
    make --no-print-directory build
    program=$target/release/imbrex
}

book=$(mktemp -d)
trap 'rm -rf "$book"' EXIT
python3 scripts/site/source.py "$program" "$book"
MDBOOK_LOG=${MDBOOK_LOG:-warn} "$mdbook" build "$book" --dest-dir "$site"
python3 scripts/site/check.py "$site"
echo "The site is $site/index.html: open it in a browser."
