#!/usr/bin/env bash
# The tests that need a kernel with ublk and zoned block devices: boots it in QEMU and runs scripts/guest/inside there.
#   test.sh [PART OF A CHECK'S NAME | --core]
# --core runs a few checks that see most of it: without KVM all of them take minutes.
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
# The test of the interface to zoned devices runs there too: it finds kernels' own zoned devices.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# With a program at hand, all tests of the workspace have just been built, in its selection of features.
selection=(-p imbrex-device)
[ -z "${IMBREX:-}" ] || selection=(--workspace)
trial=$(cargo test --quiet --locked "${selection[@]}" --test all --no-run --message-format=json |
    sed -n '/"package_id":"[^"]*crates\/device#/s/.*"executable":"\([^"]*\)".*/\1/p') || exit 1
[ -n "$trial" ] || { echo "imbrex: cargo names no test program of imbrex-device" >&2; exit 1; }
cp "$trial" "$work/device-tests"
only=${1:-}
[ "$only" != --core ] || only=core
export IMBREX_GUEST_SECONDS=${IMBREX_GUEST_SECONDS:-1500}
IMBREX_GUEST_ONLY=$only "$here/run.sh" "$here/inside/main.sh" "$program" "$work/device-tests"
