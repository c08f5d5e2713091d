#!/usr/bin/env bash
# What `make check` runs: format, wording, links, lints, and the tests that need neither a served drive nor minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
scripts/words.py
scripts/links.py
cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
cargo test --workspace --locked --quiet --lib
# Of the workspace, so that nothing is built in another selection of features.
cargo test --workspace --locked --quiet --test image_witnesses --test zone_rules --test check
