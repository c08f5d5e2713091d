#!/bin/busybox sh
# The guest's first program: mounts the root over 9p, gives it folders to write to, goes there.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
nonce=$(sed -n 's/.*nonce=\([0-9a-f]*\).*/\1/p' /proc/cmdline)

for module in $(cat /modules/order); do
    grep -q "^$(basename "$module" .ko | tr - _) " /proc/modules || insmod "/modules/$module" || poweroff -f
done
share() { mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=512000,ro "$1" "$2" || poweroff -f; }
share root /newroot
share imbrex /newroot/imbrex
share test /newroot/test
GUEST_ONLY=$(sed -n 's/.* only=\([^ ]*\).*/\1/p' /proc/cmdline)
mount --move /proc /newroot/proc
mount --move /sys /newroot/sys
mount --move /dev /newroot/dev
for folder in tmp run mnt root var; do mount -t tmpfs "$folder" "/newroot/$folder"; done
mkdir -p /newroot/var/tmp /newroot/var/lib
mount -t configfs config /newroot/sys/kernel/config 2>/dev/null
export GUEST_ONLY
export PATH=/imbrex/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
# As this very process: the kernel looks for modprobe in the root of its first process.
exec chroot /newroot /bin/bash /test/start.sh "$nonce"
