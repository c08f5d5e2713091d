#!/usr/bin/env bash
# Mutation testing of what guards data. Arguments go to cargo-mutants: `scripts/mutants.sh --shard 0/8` tries an eighth,
# `scripts/mutants.sh -f crates/device/src/lost.rs` one file. IMBREX_LAYER picks the layer of the power cuts.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v cargo-mutants >/dev/null 2>&1 || {
    echo "imbrex: installing cargo-mutants (cargo)" >&2
    cargo install --locked cargo-mutants
}
export IMBREX_LAYER="${IMBREX_LAYER:-region-rmw}" IMBREX_DAMAGES="${IMBREX_DAMAGES:-40}"
exec cargo mutants --no-shuffle --output out/mutants "$@" -- \
    --test-threads=2
