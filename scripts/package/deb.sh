#!/usr/bin/env bash
# Makes the Debian package: OUT/packages/imbrex_VERSION_amd64.deb. It fits Debian 11 and newer, and Ubuntu 20.04 and newer.
# Usage: scripts/package/deb.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/package/environment.sh

folder=$(realpath -m "${1:?the folder for the package}")
program=$(scripts/package/program.sh gnu)
version=$("$program" --version | cut -d' ' -f2)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
maintainer="Imbrex developers <imbrex@users.noreply.github.com>"
root=$work/root doc=$work/root/usr/share/doc/imbrex

scripts/package/files.sh "$program" "$root/usr" zsh/vendor-completions
# mount(8) calls the program by this name for the type fuse.imbrex.
mkdir -p "$root/usr/sbin"
ln -s ../bin/imbrex "$root/usr/sbin/mount.fuse.imbrex"
ln -s imbrex-fs-mount.1.gz "$root/usr/share/man/man1/mount.fuse.imbrex.1.gz"
install -D -m 644 -t "$root/usr/lib/systemd/system" scripts/package/systemd/*.service
install -D -m 644 -t "$doc/examples" scripts/package/systemd/*.conf
find "$root/usr/share/man" -type f -exec gzip --no-name -9 {} +
gzip --no-name -9 <CHANGELOG.md >"$doc/CHANGELOG.md.gz"
gzip --no-name -9 >"$doc/changelog.gz" <<CHANGES
imbrex ($version) stable; urgency=medium

  * CHANGELOG.md.gz lists the changes.

 -- $maintainer  $(date --utc --date="@$SOURCE_DATE_EPOCH" --rfc-email)
CHANGES
{
    cat scripts/package/copyright
    sed 's/^$/./; s/^/ /' LICENSE-MIT
    printf '\n'
} >"$doc/copyright"
scripts/package/notices.py x86_64-unknown-linux-gnu imbrex-cli | gzip --no-name -9 >"$doc/licenses-of-libraries.gz"

plain "$root"
mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: imbrex
Version: $version
Architecture: amd64
Maintainer: $maintainer
Installed-Size: $(find "$root/usr" -type f -printf '%s\n' -o -printf '0\n' | awk '{n += $1 == 0 ? 1 : int(($1 + 1023) / 1024)} END {print n}')
Depends: libc6 (>= 2.28)
Recommends: fuse3
Suggests: libnbd-bin, nbd-client, qemu-utils
Section: utils
Priority: optional
Homepage: $(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
Description: simulate and emulate shingled and interlaced disks
 Imbrex simulates magnetic disks whose tracks overlap, shingled (SMR) and
 interlaced (IMR), with their translation layers. It shows why requests to
 such a disk wait, finds out the internals of a drive, serves emulated
 drives as block devices (NBD, ublk), and keeps files on host-managed
 drives.
CONTROL
(cd "$root" && find usr -type f -printf '%P\n' | LC_ALL=C sort | sed 's#^#usr/#' | xargs md5sum) >"$root/DEBIAN/md5sums"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$folder"
dpkg-deb --root-owner-group -Zxz --build "$root" "$folder/imbrex_${version}_amd64.deb" >/dev/null
report "$folder/imbrex_${version}_amd64.deb"
