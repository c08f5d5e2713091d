#!/usr/bin/env bash
# What `make check` runs: format, wording, links, lints, and the tests that need neither a served drive nor minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
scripts/words.py
scripts/links.py
cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
cargo test --workspace --locked --quiet --lib
# Of one crate, since each crate has one program of integration tests, and the others take minutes to build.
cargo test -p imbrex-device --locked --quiet --test all -- image_witnesses:: zone_rules:: check::
