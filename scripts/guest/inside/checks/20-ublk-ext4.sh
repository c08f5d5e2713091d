# A file system on a drive with a media cache; a clean end; the same image again.
make_image /tmp/drive.img "$media_cache"
serve_ublk /tmp/drive.img --time none
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$disk" 400M
mkdir -p /mnt/a
mount "$disk" /mnt/a
fill /mnt/a
fio --name=verify --directory=/mnt/a --size=16m --rw=randwrite --bs=4k --direct=1 --ioengine=libaio --iodepth=16 \
    --verify=crc32c --verify_fatal=1 --do_verify=1 --randrepeat=1 --fallocate=none --minimal >/dev/null
fstrim /mnt/a || true
# Ctrl-C while it is mounted: the server waits for the mount to go.
kill -INT "$server"
wait_for_line 'still in use'
verify /mnt/a
umount /mnt/a
wait "$server"
serve_ublk /tmp/drive.img --time none
e2fsck -f -n "$disk"
mount -o ro "$disk" /mnt/a
verify /mnt/a
umount /mnt/a
stop_server
imbrex drive check /tmp/drive.img
echo "result: ext4 made, 60 files and 16 MiB of fio verified, clean after the server ended and began again"
