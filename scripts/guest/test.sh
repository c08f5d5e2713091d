#!/usr/bin/env bash
# The tests that need a kernel with ublk and zoned block devices: boots it in QEMU and runs scripts/guest/inside there.
#   test.sh [PART OF A CHECK'S NAME]
# Skips aloud where there is no QEMU or no way to download the guest.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
skip() {
    echo "skipped: guest tests: $*"
    exit 0
}
command -v qemu-system-x86_64 >/dev/null || skip "no qemu-system-x86_64"
[ "$(uname -m)" = x86_64 ] || skip "the guest is for x86_64"
"$here/fetch.sh" >/dev/null || skip "the guest's packages cannot be had"
program=${IMBREX:-}
if [ -z "$program" ]; then
    cargo build --quiet --locked -p imbrex-cli || exit 1
    program=${CARGO_TARGET_DIR:-target}/debug/imbrex
fi
IMBREX_GUEST_ONLY=${1:-} "$here/run.sh" "$here/inside/main.sh" "$program"
