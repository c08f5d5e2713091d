# A probe by a new file on ext4 and XFS, on ten drives of five kinds: no other file changes, and the file is gone after each
# way to end. The times of this machine decide nothing here.
modprobe ublk_drv
modprobe xfs

# Sums of all files, with their names, sizes and times.
state() { # FOLDER
    (cd "$1" && find . -type f -exec sha256sum {} + | sort && find . -printf '%p %s %T@ %y\n' | sort) | sha256sum
}

probed=0
for drive in cmr-7200 seagate-st8000as0022 cassuto-307g+set-associative imr-1t+imr-rmw cassuto-307g+s-blocks; do
    for kind in ext4 xfs; do
        serve_ublk --drive "$drive" --time none
        case $kind in
        ext4) mkfs.ext4 -q -F "$disk" 2G ;;
        xfs) mkfs.xfs -q -f -d size=2g "$disk" ;;
        esac
        mkdir -p /mnt/probed
        mount "$disk" /mnt/probed
        fill /mnt/probed
        sync
        before=$(state /mnt/probed)
        room=$(stat -f -c %f /mnt/probed)
        case $probed in
        0 | 1) imbrex probe --file /mnt/probed --size 64MiB --budget 10s --json >/tmp/said ;;
        *)
            imbrex probe --file /mnt/probed --size 64MiB --budget 10s --json >/tmp/said 2>&1 &
            probe=$!
            sleep $((probed % 4 + 1))
            case $((probed % 3)) in
            0) kill -INT $probe ;;
            1) kill -TERM $probe ;;
            2) kill -KILL $probe ;;
            esac
            wait $probe || true
            ;;
        esac
        after=$(state /mnt/probed)
        [ "$before" = "$after" ]
        # XFS frees the blocks of a file in the background.
        tries=0
        until [ "$(stat -f -c %f /mnt/probed)" -ge $((room - 4096)) ]; do
            tries=$((tries + 1))
            [ "$tries" -lt 60 ]
            sync
            sleep 0.5
        done
        umount /mnt/probed
        case $kind in
        ext4) fsck.ext4 -f -n "$disk" ;;
        xfs) xfs_repair -n "$disk" ;;
        esac
        stop_server
        probed=$((probed + 1))
    done
done
echo "result: $probed drives probed by a file; no other file changed, and the file was gone each time"
