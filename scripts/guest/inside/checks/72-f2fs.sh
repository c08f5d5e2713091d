# f2fs: its metadata in conventional zones, its log in the others.
modprobe f2fs
make_image /tmp/drive.img "$zoned"
serve_ublk /tmp/drive.img --time none
mkfs.f2fs -q -f -m "$disk"
mkdir -p /mnt/f
mount -t f2fs "$disk" /mnt/f
fill /mnt/f
fio --name=verify --directory=/mnt/f --size=8m --rw=randwrite --bs=4k --ioengine=psync --fsync=64 \
    --verify=crc32c --verify_fatal=1 --do_verify=1 --randrepeat=1 --fallocate=none --minimal >/dev/null
umount /mnt/f
stop_server
serve_ublk /tmp/drive.img --time none
fsck.f2fs --dry-run "$disk"
mount -t f2fs "$disk" /mnt/f
verify /mnt/f
umount /mnt/f
stop_server
imbrex drive check /tmp/drive.img
echo "result: f2fs made, 60 files and 8 MiB of fio verified, fsck.f2fs finds nothing"
