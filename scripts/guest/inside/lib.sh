# What the checks share. Sourced by each of them.

skip() {
    echo "$*"
    exit 77
}

# Serves a drive as a block device: words of `imbrex serve`. Sets $disk and $server.
serve_ublk() {
    modprobe ublk_drv
    imbrex serve "$@" --ublk >/tmp/serve.log 2>&1 &
    server=$!
    wait_for_line 'serving .* at /dev/ublkb'
    disk=$(sed -n 's/^serving .* at \(\/dev\/[a-z0-9]*\);.*/\1/p' /tmp/serve.log)
    [ -b "$disk" ]
}

wait_for_line() { # PATTERN
    { set +x; } 2>/dev/null
    local tries=0
    until grep -q "$1" /tmp/serve.log; do
        kill -0 "$server" || { cat /tmp/serve.log; return 1; }
        tries=$((tries + 1))
        [ "$tries" -lt 400 ]
        sleep 0.1
    done
    set -x
}

# Ends the server as Ctrl-C does, and demands that it ends well.
stop_server() {
    kill -INT "$server"
    wait "$server"
}

# What a failed check left behind must not fail the next.
clean_up() {
    umount /mnt/* 2>/dev/null
    for process in $(grep -l /imbrex/lib/ /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3); do
        kill -9 "$process" 2>/dev/null
    done
    rm -rf /tmp/*.img /tmp/said /tmp/serve.log
    sleep 0.2
}

# A drive that has all its parts: a media cache on flash-like bands, cleaning, a volatile cache.
media_cache=/test/small.toml
# A host-managed one: 64 conventional zones, then those with pointers, of 4 MiB each.
zoned=/test/zoned.toml

make_image() { # FILE DRIVE
    imbrex drive create "$1" --drive "$2" --quiet
}

# Files of many sizes, and their sums.
fill() { # FOLDER
    mkdir -p "$1/tree"
    for number in $(seq 1 60); do
        head -c $((number * 1777)) /dev/urandom >"$1/tree/$number"
    done
    (cd "$1" && find tree -type f | sort | xargs sha256sum >/tmp/sums)
}

# The sums of `fill`, again.
verify() { # FOLDER
    (cd "$1" && sha256sum -c --quiet /tmp/sums)
}

# In the foreground: here the program is started by a loader that it cannot start again.
mount_own() { # DEVICE
    imbrex fs mount "$1" /mnt/own -f --quiet -o cache=8MiB &
    local tries=0
    until mountpoint -q /mnt/own; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || return 1
        sleep 0.1
    done
}

# A tree is the same as where it came from, also after the server was killed; and what is deleted is cleaned.
judge_own() { # DEVICE TREE
    imbrex fs mkfs "$1" --quiet
    mkdir -p /mnt/own
    mount_own "$1"
    fill /mnt/own
    cp -a "$2" /mnt/own/copied
    sync -f /mnt/own/copied
    for file in $(find /mnt/own -type f); do sync "$file"; done
    sync /mnt/own/copied /mnt/own/tree /mnt/own
    # Nobody is asked to end.
    kill -9 "$(imbrex fs stat /mnt/own --json | sed -n 's/.*"process": *\([0-9]*\).*/\1/p')"
    imbrex fs umount /mnt/own --quiet
    imbrex fs check "$1" --quiet
    mount_own "$1"
    verify /mnt/own
    diff -r "$2" /mnt/own/copied
    # On the small one more than it holds, in all: bands are cleaned.
    for round in 1 2 3 4 5; do
        head -c 16M /dev/zero >"/mnt/own/filler$round"
        rm -f "/mnt/own/filler$((round - 1))" "/mnt/own/filler$((round - 2))"
    done
    rm /mnt/own/filler*
    verify /mnt/own
    umount /mnt/own
    tries=0
    until imbrex fs check "$1" --quiet >/tmp/checked 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 50 ] || { cat /tmp/checked; return 1; }
        sleep 0.2
    done
}
