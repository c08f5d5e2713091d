#!/usr/bin/env bash
# Makes the archive of the static program, its manual pages and completions: OUT/packages/imbrex-VERSION-x86_64-linux.tar.gz.
# Usage: scripts/package/static.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/package/environment.sh

folder=$(realpath -m "${1:?the folder for the package}")
program=$(scripts/package/program.sh musl)
version=$("$program" --version | cut -d' ' -f2)
name=imbrex-$version-x86_64-linux
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

scripts/package/files.sh "$program" "$work/$name"
doc=$work/$name/share/doc/imbrex
install -D -m 644 -t "$doc" LICENSE-MIT LICENSE-APACHE CHANGELOG.md
scripts/package/notices.py x86_64-unknown-linux-musl imbrex-cli >"$doc/LICENSES-OF-LIBRARIES"
plain "$work/$name"
mkdir -p "$folder"
archive "$work" "$name" | gzip --no-name -9 >"$folder/$name.tar.gz"
report "$folder/$name.tar.gz"
