#!/usr/bin/env bash
# Tests the packages in a folder: each is installed as the README says into clean roots of Debian 12 and 13 that have no network,
# and runs the command of the README there. Prints the time of each installation and run. Ends with a line of counts.
# Usage: scripts/package/test.sh FOLDER      (as root: roots are mounted)
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/../.."

packages=$(realpath "${1:?the folder with the packages}")
suites=(bookworm trixie)
cache=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package/roots
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
passed=0 failed=0 skipped=0

if [ "$(id -u)" -ne 0 ]; then
    echo "imbrex: the test of packages changes the root directory: be root (sudo --preserve-env=PATH scripts/package/test.sh $packages)" >&2
    exit 1
fi

one() { # PATTERN : the package of this name
    local files=("$packages"/$1)
    [ -e "${files[0]}" ] && [ "${#files[@]}" -eq 1 ] || {
        echo "imbrex: $packages must have one $1: make packages" >&2
        exit 1
    }
    echo "${files[0]}"
}
archive=$(one 'imbrex-*-x86_64-linux.tar.gz')
deb=$(one 'imbrex_*_amd64.deb')
wheel=$(one 'imbrex-*.whl')
image=$(one 'imbrex-*.oci.tar')

# The command of the README, and the rows of its table.
command=$(sed -n 's/^\$ imbrex \(simulate .*\)/\1/p' README.md | head -1)
rows=$(grep -E '^ cassuto-307g\+' README.md || true)
[ -n "$command" ] && [ "$(wc -l <<<"$rows")" -eq 3 ] || {
    echo "imbrex: the README has no command \`imbrex simulate\` with a table of three drives" >&2
    exit 1
}

check() { # NAME COMMAND…
    local name=$1 begun=$EPOCHREALTIME
    shift
    if "$@" >"$work/said" 2>&1; then
        passed=$((passed + 1))
        printf 'ok      %6.2f s  %s\n' "$(awk "BEGIN {print $EPOCHREALTIME - $begun}")" "$name"
    else
        failed=$((failed + 1))
        echo "FAILED            $name"
        sed 's/^/    /' "$work/said" | tail -30
    fi
}

root_of() { # SUITE [PACKAGES] : unpacks a clean root, and prints its folder
    local tar=$cache/$1${2:+-$2}.tar folder
    [ -e "$tar" ] || {
        mkdir -p "$cache"
        echo "imbrex: making a root of Debian $1 ${2:+with $2} (mmdebstrap)" >&2
        mmdebstrap --quiet --format=tar --variant=minbase ${2:+--include="$2"} "$1" "$tar.part" >&2
        mv "$tar.part" "$tar"
    }
    folder=$(mktemp -d "$work/root.XXXX")
    tar --extract --file "$tar" --directory "$folder" --exclude='./dev/*'
    echo "$folder"
}

# Runs a command in a root without a network, with /proc and the devices of this machine.
inside() { # ROOT COMMAND…
    local root=$1
    shift
    mkdir -p "$root"/{proc,dev}
    unshare --net --mount --pid --fork sh -c \
        'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" &&
            exec env -i HOME=/root PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin chroot "$0" "$@"' \
        "$root" "$@"
}

# What every installation must do, however the program came: the README's command with its result, and the exit codes.
works() { # NAME ROOT PROGRAM…
    local name=$1 root=$2
    shift 2
    readme() { # no quotes: the words of the command are separate
        local said
        said=$(inside "$root" "$@" $command) && while read -r row; do
            grep -qxF -- " $row" <<<"$said" || { echo "missing: $row" && echo "$said" && return 1; }
        done <<<"$rows"
    }
    exits() { # CODE COMMAND…
        local wanted=$1 code=0
        shift
        inside "$root" "$@" || code=$?
        [ "$code" -eq "$wanted" ] || { echo "exit code $code, and not $wanted" && return 1; }
    }
    check "$name: the command of the README" readme "$@"
    check "$name: exit code 1 where an image is missing" exits 1 "$@" drive info /missing
    check "$name: exit code 2 for a wrong command line" exits 2 "$@" simulate
}

newest_glibc() { # FILE : fails if it needs a newer glibc than 2.28
    local newest
    newest=$(objdump -T "$1" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)
    echo "newest symbol: $newest"
    [ -n "$newest" ] && [ "$(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -1)" = GLIBC_2.28 ]
}

for suite in "${suites[@]}"; do
    root=$(root_of "$suite")
    cp "$deb" "$root/imbrex.deb"
    check "$suite, .deb: dpkg --install" inside "$root" dpkg --install /imbrex.deb
    works "$suite, .deb" "$root" imbrex
    files() {
        local file
        for file in man/man1/imbrex.1.gz man/man1/imbrex-serve.1.gz bash-completion/completions/imbrex doc/imbrex/copyright; do
            [ -s "$root/usr/share/$file" ] || { echo "no $file" && return 1; }
        done
    }
    check "$suite, .deb: manual pages, completions, licences" files
    mounts() {
        inside "$root" sh -ec 'cd /root
            imbrex drive create disk.imbrex --drive strict-append --quiet
            imbrex fs mkfs disk.imbrex --quiet
            mkdir -p /mnt/files
            mount -t fuse.imbrex /root/disk.imbrex /mnt/files -o time=none
            echo "to a friend" >/mnt/files/letter
            umount /mnt/files
            for try in $(seq 100); do imbrex fs check disk.imbrex --quiet && break; sleep 0.1; done
            mount -t fuse.imbrex /root/disk.imbrex /mnt/files -o ro,time=none
            grep -qx "to a friend" /mnt/files/letter
            umount /mnt/files'
    }
    if [ -e /dev/fuse ]; then check "$suite, .deb: mount -t fuse.imbrex" mounts; else
        echo "skipped: mount -t fuse.imbrex (no /dev/fuse)" && skipped=$((skipped + 1))
    fi
    check "$suite, .deb: dpkg --purge" inside "$root" dpkg --purge imbrex
    check "$suite, .deb: nothing is left" sh -c "! find '$root/usr' '$root/etc' -name '*imbrex*' | grep ."

    root=$(root_of "$suite")
    check "$suite, archive: tar" tar -xzf "$archive" -C "$root/usr/local" --strip-components=1 --no-overwrite-dir
    works "$suite, archive" "$root" imbrex

    root=$(root_of "$suite" python3-venv)
    cp "$wheel" "$root/root/"
    check "$suite, wheel: python3 -m venv" inside "$root" python3 -m venv /root/venv
    check "$suite, wheel: pip install" inside "$root" sh -c '/root/venv/bin/pip install --no-index /root/imbrex-*.whl'
    works "$suite, wheel" "$root" /root/venv/bin/imbrex
    check "$suite, wheel: import imbrex" inside "$root" /root/venv/bin/python -c '
import imbrex
with imbrex.Drive.create("caveat-1g") as drive:
    drive.write(0, bytes(4096))
    assert drive.read(0, 4096) == bytes(4096)'
done

root=$work/image
mkdir "$root"
unpacks() {
    skopeo copy --quiet "oci-archive:$image" "oci:$work/layout:image" && umoci unpack --image "$work/layout:image" "$root"
}
check "image: umoci unpack" unpacks
works "image" "$root/rootfs" /usr/bin/imbrex
check "image: under 40 MB" test "$(stat -c %s "$image")" -lt 40000000
check "image: starts the program" sh -c "skopeo inspect --config oci-archive:'$image' | grep -q '\"/usr/bin/imbrex\"'"

dpkg-deb --extract "$deb" "$work/deb"
check ".deb: glibc 2.28 is enough" newest_glibc "$work/deb/usr/bin/imbrex"
check ".deb: lintian" lintian --fail-on error "$deb"
units() { # a wrong key is only a warning, so nothing may be printed
    local unit said
    for unit in sysinit basic shutdown local-fs multi-user; do
        printf '[Unit]\nDescription=%s\n' "$unit" >"$work/deb/usr/lib/systemd/system/$unit.target"
    done
    said=$(systemd-analyze verify --man=no --root="$work/deb" imbrex-serve@drive.service imbrex-fs@files.service 2>&1) || true
    echo "$said"
    [ -z "$said" ]
}
check ".deb: systemd units" units
python3 -m zipfile --extract "$wheel" "$work/wheel"
check "wheel: glibc 2.28 is enough" newest_glibc "$(echo "$work"/wheel/imbrex/*.so)"

echo "packages: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
