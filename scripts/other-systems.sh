#!/usr/bin/env bash
# Checks that the crates that neither use a clock nor open files compile for Windows and macOS. The other crates need Linux:
# file locks, block devices, FUSE. zig compiles the libraries in C that the readers of traces use.
set -euo pipefail
cd "$(dirname "$0")/.."

crates=(imbrex-units imbrex-disk imbrex-layer imbrex-trace imbrex-sim imbrex-calibrate)
targets=(x86_64-pc-windows-gnu x86_64-apple-darwin aarch64-apple-darwin)

PATH=$(scripts/package/tools.sh):$PATH
for target in "${targets[@]}"; do
    [ -d "$(rustc --print target-libdir --target "$target")" ] || rustup target add "$target"
    cargo-zigbuild check --locked --target "$target" "${crates[@]/#/--package=}"
    echo "compiles for $target: ${crates[*]}"
done
