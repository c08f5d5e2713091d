# The kernel's NBD client on the NBD server.
modprobe nbd nbds_max=1
make_image /tmp/drive.img "$media_cache"
imbrex serve /tmp/drive.img --time none --nbd unix:/tmp/nbd.socket >/tmp/serve.log 2>&1 &
server=$!
wait_for_line '^serving'
nbd-client -unix /tmp/nbd.socket /dev/nbd0
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/nbd0 300M
mkdir -p /mnt/n
mount /dev/nbd0 /mnt/n
fill /mnt/n
umount /mnt/n
e2fsck -f -n /dev/nbd0
mount -o ro /dev/nbd0 /mnt/n
verify /mnt/n
umount /mnt/n
nbd-client -d /dev/nbd0
stop_server
echo "result: ext4 over the kernel's NBD client, 60 files verified, e2fsck finds nothing"
