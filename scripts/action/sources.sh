#!/usr/bin/env bash
# Names the folder for a program built from the sources of the action, and the key of that folder in the cache. Equal sources
# on equal systems have equal keys.
set -euo pipefail
source "$(dirname "$0")/common.sh"

cd "$(dirname "$0")/../.."
sources=$(find Cargo.toml Cargo.lock .cargo crates -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16)
# A program does not run on a system with an older C library.
system=$(source /etc/os-release && echo "$ID-${VERSION_ID:-rolling}")
key=imbrex-$system-$(uname -m)-$sources
output key "$key"
output folder "$temporary/$key"
