#!/usr/bin/env bash
# What `make check` runs: format, lints, and the tests that need neither a served drive nor minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
cargo test --workspace --locked --quiet --lib
IMBREX_DAMAGES=20 cargo test --locked --quiet -p imbrex-device --test image_damage --test zone_rules --test check
