# Jin 2014 fig. 9, the right side: ext4 with a flash cache over RAID 5 of five drives, under the load of a file server. Runs in a
# guest of the lab: /dev/vda to vde are the disks, /dev/vdf is the flash. Set before: cache (smq, writecache, none, or trace: one disk
# in place of all), files, rounds, seed; flash, memory, load, journal and size of the file system in bytes; program. Prints the clock, the
# result of the benchmark, and the blocks of flash in use.
set -e
export DM_DISABLE_UDEV=1
set_to() { # VALUE FILE…: those that this kernel has
    value=$1
    shift
    for file in "$@"; do
        if [ -w "$file" ]; then echo "$value" >"$file"; fi
    done
}
set_to never /sys/kernel/mm/transparent_hugepage/enabled
set_to 4096 /proc/sys/vm/min_free_kbytes
for queue in /sys/block/vd?/queue; do set_to mq-deadline "$queue/scheduler"; done

# Blocks of the cache have 64 KiB; the metadata of dm-cache lie beside them on the flash.
blocks=$((flash / 65536))
metadata_sectors=8192
sectors=$((size / 512))
linear() { # NAME SECTORS FROM
    dmsetup create "$1" --table "0 $2 linear /dev/vdf $3"
}
case $cache in
none) device=/dev/md0 ;;
trace) device=/dev/vda ;;
smq)
    linear metadata $metadata_sectors 0
    linear blocks $((blocks * 128)) $metadata_sectors
    dd if=/dev/zero of=/dev/mapper/metadata bs=64k count=$((metadata_sectors / 128)) oflag=direct status=none
    dmsetup create cached --table "0 $sectors cache /dev/mapper/metadata /dev/mapper/blocks /dev/md0 128 1 writeback smq 0"
    device=/dev/mapper/cached
    ;;
writecache)
    linear blocks $((blocks * 128)) 0
    dmsetup create cached --table "0 $sectors writecache s /dev/md0 /dev/mapper/blocks 4096 0"
    device=/dev/mapper/cached
    ;;
esac

# Nothing of it is made later than it is used: neither the tables of inodes nor the journal.
mkfs.ext4 -q -J size=$((journal >> 20)) -E lazy_itable_init=1,lazy_journal_init=1,nodiscard $device $((size / 1024))k
mkdir -p /mnt/server
mount -o noinit_itable $device /mnt/server
# What the program frees it gives back at once.
export MALLOC_MMAP_THRESHOLD_=131072
sync
# So much memory is taken away that what is left is what the load may have. It is little: the kernel's limit of dirty data, a share of
# the memory, would follow a large change only slowly.
available=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
mkdir /run/ballast
mount -t tmpfs -o size=100% ballast /run/ballast
dd if=/dev/zero of=/run/ballast/file bs=1k count=$((available - (memory + load) / 1024)) status=none

"$program" reproduce jin/fig09 --in-guest clock
"$program" fs bench fileserver /mnt/server --files "$files" --operations "$rounds" --seed "$seed" --json
case $cache in
none | trace) echo 0 ;;
smq) dmsetup status cached | awk '{split($7, used, "/"); print used[1]}' ;;
writecache) dmsetup status cached | awk '{print $5 - $6}' ;;
esac
