# btrfs in its zoned mode.
modprobe btrfs
make_image /tmp/drive.img "$zoned"
serve_ublk /tmp/drive.img --time none
mkfs.btrfs -q -f -O zoned -d single -m single "$disk"
mkdir -p /mnt/b
mount -t btrfs "$disk" /mnt/b
fill /mnt/b
fio --name=verify --directory=/mnt/b --size=8m --rw=randwrite --bs=4k --ioengine=psync --fsync=64 \
    --verify=crc32c --verify_fatal=1 --do_verify=1 --randrepeat=1 --fallocate=none --minimal >/dev/null
sync
umount /mnt/b
stop_server
serve_ublk /tmp/drive.img --time none
btrfs check --readonly "$disk"
mount -t btrfs "$disk" /mnt/b
verify /mnt/b
btrfs scrub start -B /mnt/b
umount /mnt/b
stop_server
imbrex drive check /tmp/drive.img
echo "result: btrfs made, 60 files and 8 MiB of fio verified, check and scrub find nothing"
