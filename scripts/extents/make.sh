#!/usr/bin/env bash
# Makes the extent lists of crates/probe/tests/extents: the extents of a 4 GiB probe file on an aged, half-full file system.
#
#   scripts/extents/make.sh ext4|xfs mild|medium|heavy SEED    prints one list
#   scripts/extents/make.sh all                                makes the six lists that the repository holds
#
# Needs root, loop devices, mkfs.ext4 or mkfs.xfs, python3, and 6 GB free in $TMPDIR. `all` takes about five minutes.
# The drive of 200 GiB is a sparse file behind a loop device. The loop device reports that it rotates and has sectors of 4 KiB.
# The lists depend on the versions of the kernel and of mkfs, which their headers name. A seed repeats the calls of the ageing,
# and the mild and medium lists came out equal in two runs. The heavy lists differ from run to run: the number of their extents
# changed by up to a sixth. The probable reason is that the kernel frees blocks in the background.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
drive_size=200G
uuid=1b2e0000-0000-4000-8000-000000000001

usage() {
    echo "usage: scripts/extents/make.sh ext4|xfs mild|medium|heavy SEED, or: scripts/extents/make.sh all" >&2
    exit 2
}

# Prints one list. Runs in a subshell, whose trap removes the drive.
make_list() ( # FILE_SYSTEM LEVEL SEED
    file_system=$1
    level=$2
    seed=$3
    work=$(mktemp -d)
    loop=
    finish() {
        umount "$work/mount" 2>/dev/null || true
        [ -z "$loop" ] || losetup --detach "$loop"
        rm -rf "$work"
    }
    trap finish EXIT
    mkdir "$work/mount"
    truncate -s "$drive_size" "$work/drive.img"
    loop=$(losetup --find --show --sector-size 4096 "$work/drive.img")
    echo 1 >"/sys/block/${loop##*/}/queue/rotational"
    # The UUID and the hash seed choose the places of folders on ext4. All else is the default of mkfs.
    case $file_system in
        ext4)
            version=$(mkfs.ext4 -V 2>&1 | sed -n 1p)
            mkfs.ext4 -q -U "$uuid" -E "hash_seed=$uuid" "$loop"
            ;;
        xfs)
            version=$(mkfs.xfs -V)
            mkfs.xfs -q -m "uuid=$uuid" "$loop"
            ;;
        *) usage ;;
    esac
    mount -t "$file_system" "$loop" "$work/mount"
    python3 "$here/age.py" "$work/mount" "$file_system" "$level" "$seed" \
        "Extents of a probe file of 4 GiB on $file_system, on a drive of 200 GiB." \
        "File system: defaults of $version. Kernel: Linux $(uname -r)." \
        "Made with: scripts/extents/make.sh $file_system $level $seed" \
        "The drive was a sparse file. Its file system was aged with fallocate and unlink. The probe file was allocated with" \
        "one posix_fallocate and written once in order, with O_DIRECT and 1 MiB per write. FIEMAP reported the extents."
)

if [ "$*" = all ]; then
    lists=$here/../../crates/probe/tests/extents
    mkdir -p "$lists"
    seed=0
    for file_system in ext4 xfs; do
        for level in mild medium heavy; do
            seed=$((seed + 1))
            make_list "$file_system" "$level" "$seed" >"$lists/$file_system-$level.txt"
        done
    done
else
    [ $# -eq 3 ] || usage
    [[ "$2" =~ ^(mild|medium|heavy)$ ]] && [[ "$3" =~ ^[0-9]+$ ]] || usage
    make_list "$@"
fi
