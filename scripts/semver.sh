#!/usr/bin/env bash
# Checks the public items of the crates against the newest version with a tag, from 0.2.0 on: a change that breaks users needs
# a new minor version (docs/stability.md).
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.49.0
newest=""
# Neither candidates for a release, such as v0.3.0-rc1, nor the tag of the present commit.
for tag in $(git tag --list 'v[0-9]*' --no-contains HEAD --sort=version:refname | grep -v -); do
    [ "$(printf 'v0.2.0\n%s\n' "$tag" | sort --version-sort | head -1)" = v0.2.0 ] && newest=$tag
done
if [ -z "$newest" ]; then
    echo "skipped: public items of the crates (no version from 0.2.0 on has a tag here: git fetch --tags)"
    exit 0
fi
cargo semver-checks --version >/dev/null 2>&1 || {
    echo "imbrex: installing cargo-semver-checks $version (cargo)" >&2
    cargo install --quiet --locked --version "$version" cargo-semver-checks
}
cargo semver-checks --workspace --baseline-rev "$newest"
