# What the block layer is told of a drive.
serve_ublk --drive "$media_cache" --time none
queue=/sys/block/$(basename "$disk")/queue
[ "$(cat "$queue/rotational")" = 1 ]
[ "$(cat "$queue/write_cache")" = "write back" ]
[ "$(cat "$queue/fua")" = 1 ]
sector=$(cat "$queue/logical_block_size")
[ "$sector" = "$(cat "$queue/physical_block_size")" ]
bytes=$(blockdev --getsize64 "$disk")
imbrex serve --drive "$media_cache" --ublk >/tmp/other.log 2>&1 &
other=$!
until grep -q '^serving' /tmp/other.log; do
    kill -0 "$other"
    sleep 0.1
done
[ "$(ls /dev/ublkb* | wc -l)" = 2 ]
kill -INT "$other"
wait "$other"
echo "result: $disk of $bytes bytes in sectors of $sector, and a second drive beside it"
stop_server
[ ! -e "$disk" ]
