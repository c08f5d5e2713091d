# kill -9: what was flushed is in the image; the number can be had again.
modprobe ublk_drv
make_image /tmp/drive.img "$media_cache"
serve() {
    imbrex serve /tmp/drive.img --time none --ublk 7 >/tmp/serve.log 2>&1 &
    server=$!
    disk=/dev/ublkb7
    wait_for_line 'serving .* at /dev/ublkb7'
}
serve
head -c 1M /dev/urandom >/tmp/want
dd if=/tmp/want of="$disk" bs=64k oflag=direct conv=fsync,notrunc 2>/dev/null
kill -9 "$server"
wait "$server" || true
for tries in $(seq 1 100); do
    [ -e "$disk" ] || break
    sleep 0.1
done
serve
cmp -n 1048576 /tmp/want "$disk"
stop_server
echo "result: 1 MiB flushed before kill -9 reads back at the same number"
