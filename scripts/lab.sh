#!/usr/bin/env bash
# Builds the kernel of the lab into the user's cache folder, unless one is there for these options, and runs the tests that need it.
# Skips aloud where the source of the kernel cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."

# The crates as `make test` builds them: another selection of crates would build their dependencies anew.
tests=(--workspace --locked)
chosen='package(imbrex-lab) | (package(imbrex-cli) & test(/^(lab|lab_probe|pages::the_lab)/))'
if ! cargo nextest --version >/dev/null 2>&1; then
    echo "skipped: the tests of the lab (no cargo-nextest: scripts/install.sh lab)"
    exit 0
fi
cargo nextest run "${tests[@]}" --no-run
program=${CARGO_TARGET_DIR:-target}/debug/imbrex
runs() { "$program" lab run --drive cmr-7200 --quiet -- true; }
if runs 2>/dev/null; then
    echo "the kernel of the lab is there"
elif ! "$program" lab build; then
    echo "skipped: the tests of the lab (its kernel cannot be built here)"
    exit 0
elif ! runs; then
    echo "skipped: the tests of the lab (its kernel does not run here)"
    exit 0
fi
cargo nextest run "${tests[@]}" --no-fail-fast --status-level fail --final-status-level fail -E "$chosen"
