#!/usr/bin/env bash
# What `make probe-nightly` runs: the probe on drives of terabytes drawn at random, the truth about each known. Other
# drives each night; IMBREX_SEED and IMBREX_DRIVES say which and how many. A seed that fails is named, and is to be kept
# as a test of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

export IMBREX_SEED=${IMBREX_SEED:-$(date -u +%Y%m%d)000}
export IMBREX_DRIVES=${IMBREX_DRIVES:-200}
echo "── drives $IMBREX_SEED and the $((IMBREX_DRIVES - 1)) after it"
cargo test --release --locked -p imbrex-probe --test all random_drives:: -- --ignored --nocapture
