#!/usr/bin/env bash
# Serves drives over vhost-user to a guest in QEMU, and checks them there: a conventional drive, and one with a volatile cache and
# cleaning. QEMU passes no zoned disks. Ends with a line of counts. Skips aloud where there is no QEMU or no way to download the guest.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
skip() {
    echo "skipped: vhost-user in a guest: $*"
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
work=$(mktemp -d)
servers=() sockets=()
end() {
    kill -INT "${servers[@]}" 2>/dev/null
    wait
    rm -rf "$work"
}
trap end EXIT
for drive in cmr-7200 "$here/inside/small.toml"; do
    socket=$work/${#sockets[@]}
    "$program" serve --drive "$drive" --vhost-user "$socket" --time none 2>"$socket.log" &
    servers+=($!)
    sockets+=("$socket")
    for _ in $(seq 100); do grep -q '^serving' "$socket.log" && break; sleep 0.1; done
    grep -q '^serving' "$socket.log" || { cat "$socket.log"; exit 1; }
done
status=0
IMBREX_GUEST_VHOST_USER=${sockets[*]} IMBREX_GUEST_SECONDS=${IMBREX_GUEST_SECONDS:-600} \
    "$here/run.sh" "$here/inside/vhost-user.sh" || status=1
# A server that the guest has left ends well, and had no reason to disconnect the guest.
kill -INT "${servers[@]}"
for index in "${!servers[@]}"; do
    wait "${servers[$index]}" || status=1
    if grep -E 'disconnected|panicked' "${sockets[$index]}.log"; then status=1; fi
done
servers=()
[ "$status" -eq 0 ] && echo "guest: 1 passed, 0 failed" || echo "guest: 0 passed, 1 failed (vhost-user)"
exit "$status"
