#!/usr/bin/env bash
# Fetches what the guest is made of, and prints its folder: KERNEL (vmlinuz), modules, a Debian root with the tools.
# Nothing is installed: the packages are downloaded with apt-get, checked by it against Debian's keys, and unpacked.
# All of it stays in a cache outside of the repository ($IMBREX_GUEST_CACHE); a second run downloads nothing.
# The mirror is that of this machine's apt, if the machine is Debian's, or $IMBREX_DEBIAN_MIRROR.
set -euo pipefail

cache=${IMBREX_GUEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/imbrex/guest}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# The kernel: 6.1 has no ublk and fails appends of zonefs; the tools: only trixie has zonefs-tools.
kernel_suite=bookworm-backports
tools_suite=trixie
tools=(bash coreutils util-linux mount kmod grep sed diffutils findutils e2fsprogs xfsprogs btrfs-progs f2fs-tools
    zonefs-tools fio nbd-client busybox-static tcc libc6-dev mdadm dmsetup)
# A program in C whose sources are unpacked and compiled on file systems of ours.
sources=lua5.4
# What the tests need of the modules; the others would only be unpacked.
module_folders=(arch block crypto lib net/9p drivers/block drivers/md drivers/virtio fs)

# A change of this file makes another guest.
version=$(sha256sum "$0" | cut -c1-12)
guest=$cache/$version
if [ -e "$guest/complete" ]; then
    echo "$guest"
    exit 0
fi
say() { echo "guest: $*" >&2; }
for command in apt-get dpkg-deb xz; do
    command -v "$command" >/dev/null || { say "no $command: the guest is made of Debian packages"; exit 1; }
done
[ -e "$keyring" ] || { say "no $keyring: install debian-archive-keyring"; exit 1; }

# The source of apt that holds Debian itself, and not only its security updates.
mirror=${IMBREX_DEBIAN_MIRROR:-}
mirror_of_apt() {
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
        awk '$1 == "Debian" && $2 == "Debian" {print $3; exit}'
}
if [ -z "$mirror" ] && (. /etc/os-release && [ "$ID" = debian ]); then
    mirror=$(mirror_of_apt)
    # A new machine has no lists of packages yet.
    [ -n "$mirror" ] || mirror=$({ apt-get update -qq >&2 || true; } && mirror_of_apt)
fi
[ -n "$mirror" ] || {
    say "the guest is made of Debian packages, and this machine's apt has no source of them"
    say "try: IMBREX_DEBIAN_MIRROR=ADDRESS, the address of a Debian mirror (https://www.debian.org/mirror/list)"
    exit 1
}

rm -rf "$guest"
apt=$cache/apt
mkdir -p "$guest" "$apt"/{lists/partial,cache/archives/partial,parts,preferences}
cat >"$apt/parts/debian.sources" <<END
Types: deb deb-src
URIs: $mirror
Suites: $kernel_suite $tools_suite
Components: main
Architectures: amd64
Signed-By: $keyring
END
: >"$apt/status"
cat >"$apt/apt.conf" <<END
APT::Architecture "amd64";
APT::Sandbox::User "";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/parts";
Dir::Etc::preferencesparts "$apt/preferences";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
END
export APT_CONFIG=$apt/apt.conf

say "downloading a kernel and tools from Debian into $cache (about 200 MB, once)"
apt-get update -qq >&2
fetch() { # SUITE PACKAGE… : the packages and all they depend on
    local suite=$1
    shift
    rm -f "$apt/cache/archives/"*.deb
    apt-get install -qq -y --download-only -t "$suite" "$@" >&2
}
image=$(apt-cache depends "linux-image-amd64/$kernel_suite" | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -1)
(cd "$guest" && apt-get download -qq "$image/$kernel_suite" >&2)

say "unpacking $image"
dpkg-deb -x "$guest"/linux-image-*.deb "$guest/kernel"
rm "$guest"/linux-image-*.deb
release=$(ls "$guest/kernel/lib/modules")
cp "$guest/kernel/boot/vmlinuz-$release" "$guest/vmlinuz"

say "downloading and unpacking ${tools[*]}"
root=$guest/root
mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{dev,proc,sys,tmp,run,etc,mnt,imbrex,test,root,var}
for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root/$folder"; done
fetch "$tools_suite" "${tools[@]}"
for package in "$apt/cache/archives/"*.deb; do dpkg-deb -x "$package" "$root"; done
mkdir -p "$apt/sources" "$root/usr/src"
(cd "$apt/sources" && rm -f -- * && apt-get source -qq --download-only "$sources/$tools_suite" >&2)
xz -dc "$apt/sources/"*.orig.tar.* 2>/dev/null >"$root/usr/src/lua.tar" ||
    gzip -dc "$apt/sources/"*.orig.tar.* >"$root/usr/src/lua.tar"
ln -sf /proc/self/mounts "$root/etc/mtab"
printf 'root:x:0:0:root:/root:/bin/bash\n' >"$root/etc/passwd"
rm -rf "$root"/usr/share/{doc,man,locale,info}

# Decompressing is slow under emulation, so it is done here.
modules=$root/lib/modules/$release
mkdir -p "$modules/kernel"
cp "$guest/kernel/lib/modules/$release"/modules.{builtin,order}* "$modules/"
for folder in "${module_folders[@]}"; do
    from=$guest/kernel/lib/modules/$release/kernel/$folder
    mkdir -p "$modules/kernel/$folder"
    cp -r "$from/." "$modules/kernel/$folder/"
done
find "$modules" -name '*.ko.xz' -print0 | xargs -0 -r -n 64 xz -d
"$root/lib64/ld-linux-x86-64.so.2" --argv0 depmod --library-path "$root/usr/lib/x86_64-linux-gnu" \
    "$root/usr/bin/kmod" -b "$root" "$release"
rm -rf "$guest/kernel" "$apt/cache/archives/"*.deb
echo "$release" >"$guest/release"
touch "$guest/complete"
echo "$guest"
