# XFS, which flushes and uses FUA for its log.
modprobe xfs
make_image /tmp/drive.img "$media_cache"
serve_ublk /tmp/drive.img --time none
mkfs.xfs -q -K -d size=320m "$disk"
mkdir -p /mnt/x
mount "$disk" /mnt/x
fill /mnt/x
fio --name=verify --directory=/mnt/x --size=8m --rw=randwrite --bs=4k --direct=1 --ioengine=libaio --iodepth=8 \
    --fsync=16 --verify=crc32c --verify_fatal=1 --do_verify=1 --randrepeat=1 --minimal >/dev/null
umount /mnt/x
xfs_repair -n "$disk"
mount "$disk" /mnt/x
verify /mnt/x
umount /mnt/x
stop_server
grep -q '^flush' /tmp/serve.log
echo "result: xfs made, 60 files and 8 MiB of fio verified, xfs_repair -n finds nothing"
