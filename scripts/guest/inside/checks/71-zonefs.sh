# zonefs: a file for each zone, written by appends.
modprobe zonefs
make_image /tmp/drive.img "$zoned"
serve_ublk /tmp/drive.img --time none
mkfs.zonefs -f "$disk"
mkdir -p /mnt/z
mount -t zonefs "$disk" /mnt/z
head -c 1M /dev/urandom >/tmp/bytes
for zone in 0 1 7; do
    dd if=/tmp/bytes of=/mnt/z/seq/$zone bs=64k oflag=direct,append conv=notrunc 2>/dev/null
    [ "$(stat -c %s /mnt/z/seq/$zone)" = 1048576 ]
done
# Elsewhere than at its end a file takes nothing.
if dd if=/tmp/bytes of=/mnt/z/seq/1 bs=64k count=1 oflag=direct conv=notrunc 2>/dev/null; then exit 1; fi
fio --name=verify --filename=/mnt/z/seq/9 --size=4m --rw=write --bs=32k --direct=1 --ioengine=psync --file_append=1 \
    --create_on_open=0 --fallocate=none --minimal >/dev/null
truncate -s 0 /mnt/z/seq/7
umount /mnt/z
stop_server
serve_ublk /tmp/drive.img --time none
mount -t zonefs "$disk" /mnt/z
cmp -n 1048576 /tmp/bytes /mnt/z/seq/0
cmp -n 1048576 /tmp/bytes /mnt/z/seq/1
[ "$(stat -c %s /mnt/z/seq/7)" = 0 ]
[ "$(stat -c %s /mnt/z/seq/9)" = 4194304 ]
umount /mnt/z
stop_server
imbrex drive check /tmp/drive.img
echo "result: zonefs made, four of its files written and three found again"
