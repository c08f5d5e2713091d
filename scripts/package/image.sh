#!/usr/bin/env bash
# Makes the container image, an OCI archive that holds the static program alone: OUT/packages/imbrex-VERSION.oci.tar.
# Built by umoci; no daemon is needed. podman load --input FILE, or skopeo copy oci-archive:FILE docker-daemon:imbrex:VERSION, imports it.
# Usage: scripts/package/image.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/package/environment.sh

folder=$(realpath -m "${1:?the folder for the package}")
program=$(scripts/package/program.sh musl)
version=$("$program" --version | cut -d' ' -f2)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

root=$work/root
install -D -m 755 -t "$root/usr/bin" "$program"
install -D -m 644 -t "$root/usr/share/doc/imbrex" LICENSE-MIT LICENSE-APACHE
scripts/package/notices.py x86_64-unknown-linux-musl imbrex-cli >"$root/usr/share/doc/imbrex/LICENSES-OF-LIBRARIES"
mkdir -p "$root"/{data,tmp,etc}
echo 'root:x:0:0:root:/data:/usr/bin/imbrex' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
plain "$root"
chmod 1777 "$root/data" "$root/tmp"
archive "$root" . >"$work/layer.tar"

created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
# podman takes the name of the image from here.
at=$work/image:imbrex:$version
umoci init --layout "$work/image"
umoci new --image "$at"
umoci raw add-layer --image "$at" --history.created "$created" --history.comment "the static program" "$work/layer.tar"
umoci config --image "$at" --no-history --created "$created" --architecture amd64 --os linux \
    --config.entrypoint /usr/bin/imbrex --config.cmd --help --config.workingdir /data \
    --config.env PATH=/usr/bin --config.env HOME=/data \
    --config.label org.opencontainers.image.title=imbrex \
    --config.label org.opencontainers.image.version="$version" \
    --config.label org.opencontainers.image.licenses="MIT OR Apache-2.0" \
    --config.label org.opencontainers.image.source="$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)"
# The blobs of the image's earlier states.
umoci gc --layout "$work/image"
mkdir -p "$folder"
archive "$work/image" blobs index.json oci-layout >"$folder/imbrex-$version.oci.tar"
report "$folder/imbrex-$version.oci.tar"
