#!/usr/bin/env bash
# Builds the program that packages contain, and prints its path.
# Usage: scripts/package/program.sh musl|gnu
#   musl  linked statically: it runs on every Linux of x86-64
#   gnu   linked to glibc 2.28 or newer
# Equal sources make equal files, in any folder and at any time: no path and no time of the build is in the program.
set -euo pipefail
cd "$(dirname "$0")/../.."

case ${1:-} in
    musl) target=x86_64-unknown-linux-musl version="" ;;
    gnu) target=x86_64-unknown-linux-gnu version=.2.28 ;;
    *)
        echo "usage: scripts/package/program.sh musl|gnu" >&2
        exit 2
        ;;
esac

PATH=$(scripts/package/tools.sh):$PATH
source scripts/package/environment.sh
# The program has no time in it; another value at each commit would build the libraries in C anew.
SOURCE_DATE_EPOCH=0
# Apart from other builds, whose settings would do the same.
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package/$1
export CARGO_TARGET_DIR
[ -d "$(rustc --print target-libdir --target "$target")" ] || {
    echo "imbrex: adding the Rust target $target (rustup)" >&2
    rustup target add "$target" >&2
}
cargo zigbuild --profile dist --locked --bin imbrex --target "$target$version" >&2
echo "$CARGO_TARGET_DIR/$target/dist/imbrex"
