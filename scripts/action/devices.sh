# Sourced by start.sh and stop.sh: makes and removes the file or block device of a server. $folder is the folder of the server.

install_package() { # COMMAND PACKAGE
    ! command -v "$1" >/dev/null 2>&1 || return 0
    echo "imbrex: installing $2 (apt-get)"
    install_quietly "$2" && return
    echo "apt-get cannot install $2: see the log above"
    return 1
}

install_quietly() { # PACKAGE
    {
        as_root apt-get update -qq &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1"
    } </dev/null >>"$folder/log" 2>&1
}

# The packages of libnbd: Debian 13 and later Ubuntus have nbdfuse in a package of its own.
install_nbdfuse() {
    install_package nbdinfo libnbd-bin && install_package fusermount3 fuse3 &&
        install_package nbdfuse "$(apt-cache show nbdfuse >/dev/null 2>&1 && echo nbdfuse || echo libnbd-bin)"
}

# Loads a module of the kernel, or prints the reason why not. Ubuntu has some modules of its kernels for clouds in a package of
# their own.
load_module() { # NAME
    [ ! -d "/sys/module/$1" ] || return 0
    install_package modprobe kmod || return
    as_root modprobe "$1" 2>/dev/null && return
    install_quietly "linux-modules-extra-$(uname -r)" && as_root modprobe "$1" 2>/dev/null && return
    echo "this kernel ($(uname -r)) has no module $1, or this user may not load it; device file or loop needs no such module"
    return 1
}

# Prints the smallest request that the server at a URI takes.
block_size() { # URI
    nbdinfo --json --no-content "$1" | sed -n 's/.*"block_size_minimum": \([0-9]*\).*/\1/p'
}

show_file() { # URI
    touch "$folder/disk"
    as_owner "$folder/disk.root" nbdfuse "$folder/disk" "$1" </dev/null >>"$folder/log" 2>&1 &
    wait_until "$ACTION_WAIT" as_owner "$folder/disk.root" test -s "$folder/disk" || {
        echo "nbdfuse does not show the drive as $folder/disk after $ACTION_WAIT s: see the log above"
        return 1
    }
}

# Prints the first nbd device without a client.
free_nbd_device() {
    local device
    for device in /sys/block/nbd*; do
        if [ -e "$device" ] && [ ! -e "$device/pid" ]; then
            echo "/dev/${device##*/}"
            return
        fi
    done
    echo "no nbd device is free"
    return 1
}

# Makes the device, and writes its kind and its path into the folder of the server. Prints the reason if it cannot.
make_device() { # KIND URI
    local device
    case $1 in
        file)
            install_nbdfuse && show_file "$2" || return
            device=$folder/disk
            ;;
        loop)
            touch "$folder/disk.root"
            install_nbdfuse && install_package losetup mount && show_file "$2" || return
            device=$(as_root losetup --find --show --sector-size "$(block_size "$2")" "$folder/disk") || return
            ;;
        nbd)
            load_module nbd && install_package nbd-client nbd-client && install_package nbdinfo libnbd-bin || return
            device=$(free_nbd_device) || { echo "$device" && return 1; }
            as_root nbd-client -unix "${2#*socket=}" "$device" -block-size "$(block_size "$2")" || return
            ;;
    esac
    echo "$1" >"$folder/kind"
    echo "$device" >"$folder/device"
}

is_shown() {
    grep -qF " $folder/disk " /proc/mounts
}

hide_file() {
    ! is_shown || as_owner "$folder/disk.root" fusermount3 -u "$folder/disk" 2>/dev/null
}

# Removes the device, unless it is in use. Prints the reason if it cannot.
remove_device() {
    local kind device
    kind=$(cat "$folder/kind" 2>/dev/null) || kind=none
    device=$(cat "$folder/device" 2>/dev/null) || device=""
    # Mount points of the device and of its partitions.
    if [ -b "$device" ] && lsblk -nro MOUNTPOINT "$device" | grep -q .; then
        echo "$device is mounted: unmount it in an earlier step"
        return 1
    fi
    case $kind in
        loop) as_root losetup --detach "$device" || return ;;
        nbd) as_root nbd-client -d "$device" || return ;;
    esac
    # The kernel may hold a loop device for a moment.
    wait_until 5 hide_file || {
        echo "$folder/disk is in use: end the programs that have it open in an earlier step"
        return 1
    }
    rm -f "$folder/kind" "$folder/device"
}
