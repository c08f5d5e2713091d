# Sourced by the scripts that build packages: no path of this machine and no time of the build may reach a package.
# A script that calls another has set these already: other flags would build everything anew.
if [ -z "${IMBREX_PACKAGE_FLAGS:-}" ]; then
    home=${CARGO_HOME:-$HOME/.cargo}
    for map in "$PWD=/imbrex" "$(realpath "$home")=/cargo"; do
        RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$map"
        CFLAGS="${CFLAGS:-} -ffile-prefix-map=$map"
    done
    IMBREX_PACKAGE_FLAGS=set
    export RUSTFLAGS CFLAGS IMBREX_PACKAGE_FLAGS
fi
# The time of the newest commit stands for that of every file in a package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
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
