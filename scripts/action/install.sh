#!/usr/bin/env bash
# Names the imbrex program that the action runs: that of the input, one from the cache, or one built from the sources.
set -euo pipefail
source "$(dirname "$0")/common.sh"

program=$ACTION_PROGRAM
if [ -z "$program" ]; then
    program=$ACTION_FOLDER/bin/imbrex
    if [ ! -x "$program" ]; then
        root=$(realpath "$(dirname "$0")/../..")
        "$root/scripts/install.sh" build
        echo "building imbrex from $root: this takes some minutes"
        # The sources may be read-only, and the build must not use the target folder of the job's own project.
        CARGO_TARGET_DIR=$temporary/imbrex-target cargo install --locked --path "$root/crates/cli" --root "$ACTION_FOLDER"
    fi
fi
program=$(realpath "$program")
version=$("$program" --version) || fail "$program does not run on this system: see the lines above"
echo "$version"
output program "$program"
