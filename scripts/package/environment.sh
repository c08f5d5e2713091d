# Sourced by the scripts that build packages: neither paths, times and settings of this machine nor the caller's flags may reach
# a package.
umask 022
export LC_ALL=C.UTF-8

maps=("$(pwd -P)=/imbrex" "$(realpath "${CARGO_HOME:-$HOME/.cargo}")=/cargo" "$(rustc --print sysroot)=/rust"
    "$(realpath -m "${CARGO_TARGET_DIR:-target}")=/target")
export RUSTFLAGS="${maps[*]/#/--remap-path-prefix=}"
export CFLAGS="${maps[*]/#/-ffile-prefix-map=}"

# The time of the newest commit stands for that of every file in a package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null)} || true
[ -n "$SOURCE_DATE_EPOCH" ] || {
    echo "imbrex: git does not tell the time of the newest commit here: set SOURCE_DATE_EPOCH to the seconds since 1970 that" >&2
    echo "  files of the package shall have, or clone the repository as this user" >&2
    exit 1
}
export SOURCE_DATE_EPOCH

archive() { # FOLDER NAME… : a tar archive of these entries of the folder, the same for the same contents
    local folder=$1
    shift
    tar --directory "$folder" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
        --create "$@"
}

plain() { # FOLDER : gives everything below it the usual permissions, whatever the umask was
    chmod -R u=rwX,go=rX "$1"
}

report() { # FILE : says that a package is made
    echo "made: $(realpath --relative-to=. "$1"), $(stat -c %s "$1" | numfmt --to=si --suffix=B), SHA-256 $(sha256sum "$1" | cut -c1-16)…"
}
