#!/usr/bin/env bash
# Installs the programs with which packages are built into a Python environment below the target folder, if they are not
# there, and prints the folder of the programs.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package/tools
wanted=scripts/package/tools.txt

[ "$(uname -sm)" = "Linux x86_64" ] || {
    echo "imbrex: packages are built on Linux on x86-64; this is $(uname -sm)" >&2
    exit 1
}
if ! cmp -s "$wanted" "$tools/installed.txt"; then
    echo "imbrex: installing cargo-zigbuild, maturin, wheel, zig into $tools (pip)" >&2
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r "$wanted" >&2 || {
        echo "imbrex: pip cannot install them: see above; a network is needed" >&2
        exit 1
    }
    cp "$wanted" "$tools/installed.txt"
fi
echo "$tools/bin"
