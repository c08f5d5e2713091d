#!/usr/bin/env bash
# What no FUSE file system has, shown on ours beside libfuse's own passthrough_hp on tmpfs, and beside ext4, which has it. Root;
# passthrough_hp is built as by scripts/bench-fuse.sh, and left out where it cannot be.
#
#   scripts/fuse-limits.sh
set -euo pipefail
cd "$(dirname "$0")/.."
imbrex=${IMBREX:-$PWD/target/debug/imbrex}
hp=${PASSTHROUGH_HP:-$PWD/target/judges/bin/passthrough_hp}
script=$PWD/scripts/aio-beside-reads.py

work=$(mktemp -d)
finish() {
    umount "$work/ours" 2>/dev/null || true
    umount "$work/theirs" 2>/dev/null || true
    umount "$work/source" 2>/dev/null || true
    umount "$work/ext4" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
mkdir "$work/ours" "$work/theirs" "$work/ext4" "$work/source"
truncate -s 64M "$work/ext4.img"
mkfs.ext4 -q "$work/ext4.img"
mount -o loop,strictatime "$work/ext4.img" "$work/ext4"
"$imbrex" drive create -q "$work/drive.img" --drive strict-append >/dev/null
"$imbrex" fs mkfs -q "$work/drive.img" >/dev/null
"$imbrex" fs mount -q "$work/drive.img" "$work/ours"
places=("$work/ext4" "$work/ours")
if [ -x "$hp" ]; then
    mount -t tmpfs tmpfs "$work/source"
    "$hp" "$work/source" "$work/theirs"
    places+=("$work/theirs")
else
    echo "SKIPPED: $hp is not there; scripts/bench-fuse.sh builds it" >&2
fi
for place in "${places[@]}"; do
    echo "== ${place##*/}"
    timeout 60 python3 "$script" "$place/aio" 300 || true
    before=$(stat -c %X "$place/aio")
    sleep 1.1
    cat "$place/aio" >/dev/null
    echo "access time after a read: $([ "$(stat -c %X "$place/aio")" = "$before" ] && echo as before || echo changed)"
    echo "time of birth: $(stat -c %w "$place/aio")"
done
