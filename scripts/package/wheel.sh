#!/usr/bin/env bash
# Makes the wheel of the Python package, for Python 3.11 and newer on Linux with glibc 2.28 or newer. It also installs the
# command imbrex: the program itself, so its exit codes are the same.
# Usage: scripts/package/wheel.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$(scripts/package/tools.sh):$PATH
source scripts/package/environment.sh

folder=$(realpath -m "${1:?the folder for the package}")
program=$(scripts/package/program.sh gnu)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# As in program.sh: one time for each commit, and a folder of its own. The earliest time that a wheel can have is 1980.
SOURCE_DATE_EPOCH=315532800 CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package/wheel \
    maturin build --quiet --zig --profile dist --locked --target x86_64-unknown-linux-gnu --compatibility manylinux_2_28 \
    --interpreter python3 --out "$work/built"
wheel unpack --dest "$work" "$work"/built/imbrex-*.whl >/dev/null
root=$(echo "$work"/imbrex-*)
# The list of libraries names the folder of the sources.
sed -i "s#path+file://$(pwd -P)#path+file:///imbrex#g" "$root"/*.dist-info/sboms/*.json
scripts=$root/$(basename "$root").data/scripts
install -D -m 755 -t "$scripts" "$program"
scripts/package/notices.py x86_64-unknown-linux-gnu imbrex-py imbrex-cli >"$(echo "$root"/*.dist-info)/licenses/LICENSES-OF-LIBRARIES"
mkdir -p "$folder"
rm -f "$folder"/imbrex-*.whl
wheel pack --dest-dir "$folder" "$root" >/dev/null
report "$(echo "$folder"/imbrex-*.whl)"
