# With a pace the answers come from another thread; read-only is kept; discards and zeroes read as zeroes.
# The drive never counts as idle: a hundred times as fast it would clean after 12 ms without a request, more bytes than the
# emulated machine can copy in that time.
make_image /tmp/drive.img "$media_cache:idle=10000s"
serve_ublk /tmp/drive.img --time 100x
fio --name=verify --filename="$disk" --size=4m --rw=randwrite --bs=4k --direct=1 --ioengine=libaio --iodepth=32 \
    --verify=crc32c --verify_fatal=1 --do_verify=1 --randrepeat=1 --minimal >/dev/null
# As many bytes of zeroes, by the kernel's request for them.
head -c 1M /dev/zero >/tmp/zeroes
blkdiscard -z -o 0 -l 1048576 "$disk"
cmp -n 1048576 /tmp/zeroes "$disk"
blkdiscard -o 1048576 -l 1048576 "$disk" || echo "this layer keeps no trims"
stop_server
grep -q 'answers were late' /tmp/serve.log
serve_ublk /tmp/drive.img --time none --read-only
[ "$(blockdev --getro "$disk")" = 1 ]
if dd if=/tmp/zeroes of="$disk" bs=4k count=1 oflag=direct 2>/dev/null; then exit 1; fi
cmp -n 1048576 /tmp/zeroes "$disk"
stop_server
echo "result: $(grep -h latency /tmp/serve.log | head -1)"
