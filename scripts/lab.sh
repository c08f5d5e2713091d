#!/usr/bin/env bash
# Builds the kernel of the lab into the user's cache folder, unless one is there for these options, and runs the tests that need it.
# Skips aloud where the source of the kernel cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --locked -p imbrex-cli
program=${CARGO_TARGET_DIR:-target}/debug/imbrex
if "$program" lab run --drive cmr-7200 --quiet -- true 2>/dev/null; then
    echo "the kernel of the lab is there"
elif ! "$program" lab build; then
    echo "skipped: the tests of the lab (its kernel cannot be built here)"
    exit 0
fi
cargo test --locked -p imbrex-lab -- --nocapture
cargo test --locked -p imbrex-cli --test all -- lab:: the_lab --nocapture
