# Our own file system on zoned block devices, one of the kernel's and one of ours: a tree is the same as where it came from,
# also after the server was killed; mount(8) and umount(8) do as for others; what is deleted is cleaned.
modprobe fuse
modprobe null_blk nr_devices=0
mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
null=/sys/kernel/config/nullb/nullb8
mkdir "$null"
echo 112 >"$null/size"
echo 1 >"$null/memory_backed"
echo 1 >"$null/zoned"
echo 4 >"$null/zone_size"
echo 8 >"$null/zone_nr_conv"
echo 6 >"$null/zone_max_active"
echo 1 >"$null/power"
tree=/lib/modules/$(uname -r)/kernel/lib

# In the foreground: here the program is started by a loader that it cannot start again.
mount_own() { # DEVICE
    imbrex fs mount "$1" /mnt/own -f --quiet -o cache=8MiB &
    local tries=0
    until mountpoint -q /mnt/own; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || return 1
        sleep 0.1
    done
}

judge() { # DEVICE
    imbrex fs mkfs "$1" --quiet
    mkdir -p /mnt/own
    mount_own "$1"
    fill /mnt/own
    cp -a "$tree" /mnt/own/copied
    sync -f /mnt/own/copied
    for file in $(find /mnt/own -type f); do sync "$file"; done
    sync /mnt/own/copied /mnt/own/tree /mnt/own
    # Nobody is asked to end.
    kill -9 "$(imbrex fs stat /mnt/own --json | sed -n 's/.*"process": *\([0-9]*\).*/\1/p')"
    imbrex fs umount /mnt/own --quiet
    imbrex fs check "$1" --quiet
    mount_own "$1"
    verify /mnt/own
    diff -r "$tree" /mnt/own/copied
    # On the small one more than it holds, in all: bands are cleaned.
    for round in 1 2 3 4 5; do
        head -c 16M /dev/zero >"/mnt/own/filler$round"
        rm -f "/mnt/own/filler$((round - 1))" "/mnt/own/filler$((round - 2))"
    done
    rm /mnt/own/filler*
    verify /mnt/own
    umount /mnt/own
    tries=0
    until imbrex fs check "$1" --quiet >/tmp/checked 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 50 ] || { cat /tmp/checked; return 1; }
        sleep 0.2
    done
}
judge /dev/nullb8
files=$(find "$tree" -type f | wc -l)
echo 0 >"$null/power"
rmdir "$null"
serve_ublk --drive "$zoned" --time none
judge "$disk"
stop_server
echo "result: $files files of the kernel's copied, compared and kept through a kill, on null_blk and on a served drive"
