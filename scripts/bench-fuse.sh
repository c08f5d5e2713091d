#!/usr/bin/env bash
# Our file systems behind a mount beside libfuse's own passthrough_hp, both on tmpfs, one thread each: ratios, over one where
# ours is faster. Root. passthrough_hp is an example in libfuse's sources, which are fetched from where Debian has them.
#
#   scripts/bench-fuse.sh            on the store strict-append
#   scripts/bench-fuse.sh caveat-2t  on the store of this profile
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-strict-append-2t}
imbrex=$PWD/target/release/imbrex
bench=$PWD/target/release/imbrex-bench
tools=$PWD/target/judges
hp=$tools/bin/passthrough_hp

cargo build --release --locked --quiet -p imbrex-cli -p imbrex-bench
if [ ! -x "$hp" ]; then
    for pair in g++:g++ pkg-config:pkg-config xz:xz-utils curl:curl; do
        command -v "${pair%:*}" >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${pair#*:}" >/dev/null
    done
    pkg-config --exists fuse3 || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libfuse3-dev >/dev/null
    sources=$(mktemp -d)
    package=$(cd "$sources" && apt-get download --print-uris libfuse3-dev | cut -d"'" -f2)
    version=$(pkg-config --modversion fuse3)
    echo "imbrex: building passthrough_hp of libfuse $version (${package%/*})" >&2
    curl -sSf "${package%/*}/fuse3_$version.orig.tar.xz" | tar xJ -C "$sources" --strip-components=1
    mkdir -p "$tools/bin"
    # shellcheck disable=SC2046 # these are words
    g++ -O2 -w -std=c++17 "$sources/example/passthrough_hp.cc" $(pkg-config fuse3 --cflags --libs) -lpthread -o "$hp"
    rm -rf "$sources"
fi

work=$(mktemp -d)
finish() {
    umount "$work/ours" "$work/theirs" 2>/dev/null || true
    sleep 1
    umount "$work" 2>/dev/null || umount -l "$work" || true
    rmdir "$work"
}
trap finish EXIT
mount -t tmpfs tmpfs "$work"
mkdir "$work/ours" "$work/theirs" "$work/source"
"$imbrex" drive create -q "$work/drive.img" --drive "$profile" >/dev/null
"$imbrex" fs mkfs "$work/drive.img" >/dev/null
"$imbrex" fs mount -q "$work/drive.img" "$work/ours"
"$hp" --single "$work/source" "$work/theirs"
"$bench" fuse "$work/ours" "$work/theirs"
