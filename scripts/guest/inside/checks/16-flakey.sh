# An image on ext4 on a dm-flakey device whose writes begin to fail. Flushed data stay readable, later writes fail, and the server exits
# with 1. Once the disk works again, the image holds all flushed data and has no damage.
for module in loop dm_mod dm_flakey ext4 ublk_drv; do modprobe "$module" || skip "no module $module"; done
export DM_DISABLE_UDEV=1
truncate -s 256M /tmp/disk.img
loop=$(losetup --find --show /tmp/disk.img)
sectors=$(blockdev --getsz "$loop")
table() { # WORDS OF A TARGET
    if [ -e /dev/mapper/host ]; then
        dmsetup reload host --table "0 $sectors $*"
        dmsetup suspend --noflush --nolockfs host
        dmsetup resume host
    else
        dmsetup create host --table "0 $sectors $*"
    fi
}
works="linear $loop 0"
# From now on, for an hour, every write fails.
fails="flakey $loop 0 0 3600 1 error_writes"

serve() {
    imbrex serve /mnt/host/drive.img --sync barrier --time none --ublk 7 >/tmp/serve.log 2>&1 &
    server=$!
    disk=/dev/ublkb7
    wait_for_line 'serving .* at /dev/ublkb7'
}
put() { # FILE MIB
    dd if="$1" of="$disk" bs=64k seek=$(($2 * 16)) oflag=direct conv=fsync,notrunc 2>/dev/null
}
kept() { # FILE MIB
    dd if="$disk" bs=64k skip=$(($2 * 16)) count=16 iflag=direct 2>/dev/null | cmp - "$1"
}

table "$works"
mkfs.ext4 -q /dev/mapper/host
mkdir -p /mnt/host
rounds=0
for round in 1 2 3; do
    mount /dev/mapper/host /mnt/host
    rm -f /mnt/host/drive.img
    make_image /mnt/host/drive.img "$media_cache"
    serve
    head -c 1M /dev/urandom >/tmp/before
    head -c 1M /dev/urandom >/tmp/after
    put /tmp/before 1
    table "$fails"
    ! put /tmp/after 3
    # The first failed sync was the last: later ones do not succeed because the kernel has dropped the pages.
    ! put /tmp/after 4
    kept /tmp/before 1
    kill -INT "$server"
    status=0
    wait "$server" || status=$?
    [ "$status" -eq 1 ]
    grep -q 'the drive has stopped' /tmp/serve.log
    umount /mnt/host
    table "$works"
    mount /dev/mapper/host /mnt/host
    serve
    kept /tmp/before 1
    put /tmp/after 3
    kept /tmp/after 3
    stop_server
    imbrex drive check /mnt/host/drive.img
    umount /mnt/host
    rounds=$((rounds + 1))
done
dmsetup remove host
losetup --detach "$loop"
echo "result: $rounds rounds on a host's disk whose writes began to fail: nothing lost, each told by errors, message and exit code"
