#!/bin/bash
# Checks three drives that are served over vhost-user: /dev/vda conventional, /dev/vdb with a media cache, /dev/vdc with zones.
set -euxo pipefail
exec 2>&1
source /test/lib.sh
for module in virtio_blk ext4 f2fs xfs; do modprobe "$module"; done
for name in vda vdb vdc; do until [ -b /dev/$name ]; do sleep 0.1; done; done

# The properties of the disks.
[ "$(cat /sys/block/vda/queue/zoned)" = none ]
[ "$(cat /sys/block/vdc/queue/zoned)" = host-managed ]
[ "$(cat /sys/block/vda/queue/write_cache)" = "write back" ]
[ "$(cat /sys/block/vdb/queue/discard_max_bytes)" -gt 0 ]

# Random bytes under load from several queues come back, also after the page cache is dropped.
sums() { (cd "$1" && find . -type f | sort | xargs sha256sum); }
for name in vda vdb; do
    mkdir -p /mnt/$name
    mkfs.ext4 -q /dev/$name
    mount -o discard /dev/$name /mnt/$name
    fill /mnt/$name
    fill /mnt/$name/second &
    fill /mnt/$name/third
    wait $!
    rm -r /mnt/$name/second
    sync
    before=$(sums /mnt/$name)
    umount /mnt/$name
    echo 3 >/proc/sys/vm/drop_caches
    e2fsck -fn /dev/$name
    mount /dev/$name /mnt/$name
    [ "$before" = "$(sums /mnt/$name)" ]
    umount /mnt/$name
done

# Zones: a report, a write that is not at the pointer, writes in order, a reset.
blkzone report -c 70 /dev/vdc >/tmp/zones
grep -c 'SEQ_WRITE_REQUIRED' /tmp/zones
first=$(sed -n '/SEQ_WRITE_REQUIRED/{s/.*start: 0x\([0-9a-f]*\),.*/\1/p;q}' /tmp/zones)
first=$((16#$first))
if dd if=/dev/zero of=/dev/vdc bs=4096 count=1 seek=$((first / 8 + 5)) oflag=direct 2>/dev/null; then exit 1; fi
head -c 1M /dev/urandom >/tmp/bytes
dd if=/tmp/bytes of=/dev/vdc bs=64k seek=$((first / 128)) oflag=direct 2>/dev/null
dd if=/dev/vdc bs=64k skip=$((first / 128)) count=16 iflag=direct 2>/dev/null | cmp - /tmp/bytes
blkzone report -o "$first" -c 1 /dev/vdc | grep 'wptr 0x000800'
blkzone reset -o "$first" -c 1 /dev/vdc
blkzone report -o "$first" -c 1 /dev/vdc | grep 'wptr 0x000000'
echo "guest: vhost-user: passed"
