#!/bin/bash
# Checks two drives that are served over vhost-user: /dev/vda conventional, /dev/vdb with a media cache.
set -euxo pipefail
exec 2>&1
source /test/lib.sh
for module in virtio_blk ext4; do modprobe "$module"; done
for name in vda vdb; do until [ -b /dev/$name ]; do sleep 0.1; done; done

# The properties of the disks.
[ "$(cat /sys/block/vda/queue/zoned)" = none ]
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

echo "guest: vhost-user: passed"
