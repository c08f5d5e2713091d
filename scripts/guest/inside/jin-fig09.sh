#!/bin/bash
# Jin 2014 fig. 9, the right side: ext4 with a flash cache over RAID 5 of five served drives, under the load of a file server.
# `imbrex reproduce jin/fig09` serves the drives and runs this as the guest's main script: /dev/vda to vde are the disks, /dev/vdf is
# the flash. GUEST_ONLY has words KEY=VALUE with commas between: cache (smq, writecache or none), files, rounds, seed, flash, memory, load and
# journal in bytes, and slow: how many times as slow the drives are as they would be, so as many times as long are the kernel's timers.
set -euo pipefail
for word in ${GUEST_ONLY//,/ }; do declare "${word%%=*}=${word#*=}"; done
export MDADM_NO_UDEV=1 DM_DISABLE_UDEV=1
say() { echo "fig09: $*"; }
for module in virtio_blk raid456 dm_mod dm_cache dm_cache_smq dm_writecache ext4; do modprobe "$module"; done
until [ -b /dev/vdf ]; do sleep 0.1; done

set_to() { # VALUE FILE…: those that this kernel has
    local value=$1 file
    shift
    for file in "$@"; do
        if [ -w "$file" ]; then echo "$value" >"$file"; fi
    done
}
set_to never /sys/kernel/mm/transparent_hugepage/enabled
set_to 4096 /proc/sys/vm/min_free_kbytes
set_to $((500 * slow)) /proc/sys/vm/dirty_writeback_centisecs
set_to $((3000 * slow)) /proc/sys/vm/dirty_expire_centisecs
for queue in /sys/block/vd?/queue; do
    set_to mq-deadline "$queue/scheduler"
    set_to $((500 * slow)) "$queue/iosched/read_expire"
    set_to $((5000 * slow)) "$queue/iosched/write_expire"
    set_to $((10000 * slow)) "$queue/iosched/prio_aging_expire"
    set_to $((75000 * slow)) "$queue/wbt_lat_usec"
done

# New drives read as zeros, so their parity is right as it is. For disks of this size mdadm has long made the bitmap by itself.
mdadm --quiet --create /dev/md0 --level=5 --raid-devices=5 --assume-clean --bitmap=internal --run /dev/vd[a-e]
set_to $((slow / 5)).$((slow % 5 * 2)) /sys/block/md0/md/safe_mode_delay
set_to $((5 * slow)) /sys/block/md0/md/bitmap/time_base
size=$(blockdev --getsz /dev/md0)

# Blocks of the cache have 64 KiB; the metadata of dm-cache lie beside them on the flash.
blocks=$((flash / 65536))
metadata_sectors=8192
linear() { # NAME SECTORS FROM
    dmsetup create "$1" --table "0 $2 linear /dev/vdf $3"
}
case $cache in
none) device=/dev/md0 ;;
smq)
    linear metadata $metadata_sectors 0
    linear blocks $((blocks * 128)) $metadata_sectors
    dd if=/dev/zero of=/dev/mapper/metadata bs=64k count=$((metadata_sectors / 128)) oflag=direct status=none
    dmsetup create cached --table "0 $size cache /dev/mapper/metadata /dev/mapper/blocks /dev/md0 128 1 writeback smq 0"
    device=/dev/mapper/cached
    ;;
writecache)
    linear blocks $((blocks * 128)) 0
    dmsetup create cached --table "0 $size writecache s /dev/md0 /dev/mapper/blocks 4096 0"
    device=/dev/mapper/cached
    ;;
esac

# Nothing of it is made later than it is used: neither the tables of inodes nor the journal.
mkfs.ext4 -q -J size=$((journal >> 20)) -E lazy_itable_init=1,lazy_journal_init=1,nodiscard $device
mkdir -p /mnt/server
mount -o noinit_itable,commit=$((5 * slow)) $device /mnt/server
# In memory, so that its pages never leave it. What it frees it gives back at once.
cp -r /imbrex/lib /tmp/program
export MALLOC_MMAP_THRESHOLD_=131072
sync
# So much memory is taken away that what is left is what the load may have. A control group would not do: on drives so slow the kernel takes a
# group whose pages wait to be written for one without memory, and ends the load.
available=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
mkdir /run/ballast
mount -t tmpfs -o size=100% ballast /run/ballast
dd if=/dev/zero of=/run/ballast/file bs=1k count=$((available - (memory + load) / 1024)) status=none
left=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)

processor() { # jiffies that were busy, and all of them
    busybox awk '/^cpu / {all = 0; for (i = 2; i <= 9; i++) all += $i; print all - $5 - $6, all}' /proc/stat
}
read -r busy_before all_before <<<"$(processor)"
say begins
/tmp/program/ld-linux* --library-path /tmp/program /tmp/program/imbrex fs bench fileserver /mnt/server --files "$files" \
    --operations "$rounds" --seed "$seed" --json >/tmp/document
say ended
read -r busy all <<<"$(processor)"
say "processor $((busy - busy_before)) $((all - all_before))"
case $cache in
none) say "flash 0 0" ;;
smq) dmsetup status cached | busybox awk '{split($7, used, "/"); print "fig09: flash", used[1], used[2]}' ;;
writecache) dmsetup status cached | busybox awk '{print "fig09: flash", $5 - $6, $5}' ;;
esac
say "memory $left"
say "state $(dmsetup status cached 2>/dev/null || true)"
say document
cat /tmp/document
say "end of document"
umount /mnt/server
