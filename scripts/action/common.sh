# Sourced by the scripts of the action. Each server has a folder, $temporary/imbrex-server.XXXXXX, with these files:
#   nbd, control  sockets of the server
#   log           standard output and error of the server, and of nbdfuse
#   process       process number of the server
#   status        exit code of the server, once it has ended
#   kind, device  the kind and the path of the file or block device, if there is one
#   disk          the file that nbdfuse shows
#   process.root  present if the server runs as root
#   disk.root     present if nbdfuse runs as root
#   stopped       present once the server is stopped
temporary=${RUNNER_TEMP:-${TMPDIR:-/tmp}}
# Some commands for devices are in folders that only root has in its path.
PATH=$PATH:/usr/sbin:/sbin

# Ends the script with an error that GitHub shows beside the job.
fail() { # MESSAGE
    local message=${1//'%'/'%25'}
    message=${message//$'\n'/'%0A'}
    echo "::error title=imbrex::$message"
    exit 1
}

output() { # NAME VALUE
    [ -z "${GITHUB_OUTPUT:-}" ] || printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
    echo "$1: $2"
}

# Prints a log. The bar before each line keeps GitHub from reading commands in the log.
print_log() { # FILE
    echo "::group::Log of imbrex serve"
    sed 's/^/| /' "$1"
    echo "::endgroup::"
}

as_root() { # COMMAND…
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo -n -- "$@"
    else
        echo "$1 needs root, and there is no sudo: run the job as root" >&2
        return 1
    fi
}

# Runs a command as root if a marker exists.
as_owner() { # MARKER COMMAND…
    if [ -e "$1" ]; then as_root "${@:2}"; else "${@:2}"; fi
}

# Waits until a command succeeds; returns 1 if that takes longer than so many seconds.
wait_until() { # SECONDS COMMAND…
    local end=$((SECONDS + $1))
    until "${@:2}"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}
