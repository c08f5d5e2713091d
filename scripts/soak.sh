#!/usr/bin/env bash
# The long use of served drives, as `make test-long` runs it: 100 GiB of platter of each built-in profile, with kills and
# checks; kills behind volatile caches at every pace; fio. A line a round, and tables; all of it goes to out/soak.log too.
#
#   scripts/soak.sh            everything: hours
#   scripts/soak.sh rounds     one part: rounds, kills, volatile, fio
#
# IMBREX_SOAK_GIB, IMBREX_SOAK_DRIVES, IMBREX_SOAK_LAYERS, IMBREX_SOAK_SEED and IMBREX_KILL_ROUNDS say how much, of what, and
# how: the head of crates/cli/tests/all/soak/mod.rs tells of each. IMBREX_SOAK_PROFILE=dev builds without optimization.
set -uo pipefail
cd "$(dirname "$0")/.."

mkdir -p out
cargo test --profile "${IMBREX_SOAK_PROFILE:-release}" --locked -p imbrex-cli --test all -- \
    --ignored --nocapture --test-threads=1 "soak::${1:+$1::}" 2>&1 | tee out/soak.log
exit "${PIPESTATUS[0]}"
