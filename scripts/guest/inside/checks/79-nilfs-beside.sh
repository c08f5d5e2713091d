# NILFS2 beside ext4, each new on a served drive, with the loads of Singh 2014 §5.2 (smaller ones, for an emulated processor):
# in time of the disk.
modprobe ublk_drv
modprobe nilfs2
busybox ifconfig lo 127.0.0.1 up

beside() { # FILE SYSTEM, LOAD AND ITS SIZES
    local kind=$1
    shift
    imbrex serve --drive caveat-2t+conventional --ublk 7 --time none --window 127.0.0.1:8099 --quiet &
    local server=$!
    until [ -b /dev/ublkb7 ]; do kill -0 "$server"; sleep 0.2; done
    case $kind in
    ext4) mkfs.ext4 -q -E lazy_itable_init=1,lazy_journal_init=1 /dev/ublkb7 && mount -o noinit_itable /dev/ublkb7 /mnt/beside ;;
    nilfs2) mkfs.nilfs2 -q /dev/ublkb7 && mount -t nilfs2 -o nogc /dev/ublkb7 /mnt/beside ;;
    esac
    imbrex fs bench "$@" /mnt/beside --served 127.0.0.1:8099 --json >/tmp/measured
    # The name of a phase, then what the drive took for it.
    sed -n 's/^      "name": "\(.*\)",/\1/p; s/^      "disk_ns": \([0-9]*\),/\1/p' /tmp/measured | paste - - |
        busybox awk -F'\t' -v head="$kind $1" '{printf "result: %s, %s: %.2f s\n", head, $1, $2 / 1e9}'
    umount /mnt/beside
    kill -INT "$server"
    wait "$server"
    # The next one is served under the same name.
    while [ -e /dev/ublkb7 ]; do sleep 0.2; done
}

mkdir -p /mnt/beside
for kind in ext4 nilfs2; do
    beside "$kind" lfs
    beside "$kind" smallfiles --files 2000
    beside "$kind" postmark --files 4000 --operations 10000
    beside "$kind" compile --files 6000 --operations 400
done
