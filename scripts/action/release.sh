#!/usr/bin/env bash
# Checks that a tag names the version of the workspace in the current folder, and that CHANGELOG.md has a section about this version
# with a date. Prints the section.
# Usage: scripts/action/release.sh TAG
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: scripts/action/release.sh TAG" >&2; exit 2; }
version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ "$1" = "v$version" ] || {
    echo "imbrex: tag $1 is not v$version, the version in Cargo.toml: change one of them" >&2
    exit 1
}
[ -f CHANGELOG.md ] || { echo "imbrex: CHANGELOG.md does not exist" >&2; exit 1; }
! grep -qiE "^## \[?${version//./\\.}[],: ].*unreleased" CHANGELOG.md || {
    echo "imbrex: CHANGELOG.md calls version $version unreleased: give its section the date" >&2
    exit 1
}
# The heading is the version, perhaps in brackets, and the date.
section=$(awk -v version="$version" '
    /^## / {
        heading = $2
        gsub(/[][,:]/, "", heading)
        is_inside = heading == version
        next
    }
    is_inside
' CHANGELOG.md | sed -e '/./,$!d')
[ -n "$section" ] || { echo "imbrex: CHANGELOG.md has no section $version (## $version)" >&2; exit 1; }
echo "$section"
