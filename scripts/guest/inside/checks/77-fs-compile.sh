# A source tree unpacked and compiled on our own file system, on a zoned block device of the kernel's; the same in memory
# beside it, compared to the byte; unmounted and checked.
modprobe fuse
modprobe null_blk nr_devices=0
mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
null=/sys/kernel/config/nullb/nullb9
mkdir "$null"
echo 256 >"$null/size"
echo 1 >"$null/memory_backed"
echo 1 >"$null/zoned"
echo 4 >"$null/zone_size"
echo 8 >"$null/zone_nr_conv"
echo 6 >"$null/zone_max_active"
echo 1 >"$null/power"

compile_in() { # FOLDER
    mkdir -p "$1"
    (
        cd "$1"
        tar xf /usr/src/lua.tar
        cd lua-*/src
        for file in *.c; do tcc -O2 -DLUA_USE_LINUX -c "$file"; done
        tcc -o lua $(ls *.o | grep -v luac.o) -lm -ldl
        printf 'local n = 0; for i = 1, 100000 do n = n + i end; print(n)' >sum.lua
        [ "$(./lua sum.lua)" = 5000050000 ]
    )
}

imbrex fs mkfs /dev/nullb9 --quiet
mkdir -p /mnt/compiled
imbrex fs mount -f /dev/nullb9 /mnt/compiled -o exec,suid --quiet &
server=$!
until mountpoint -q /mnt/compiled; do kill -0 "$server"; sleep 0.2; done
compile_in /mnt/compiled/tree
compile_in /tmp/compiled/tree
diff -r /tmp/compiled/tree /mnt/compiled/tree
umount /mnt/compiled
wait "$server"
imbrex fs check /dev/nullb9 --quiet
files=$(find /tmp/compiled/tree -type f | wc -l)
rm -rf /tmp/compiled
echo 0 >"$null/power"
rmdir "$null"
echo "result: $files files unpacked and compiled, the program run, compared and checked"
