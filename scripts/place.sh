#!/usr/bin/env bash
# Installs the built program, its manual pages and its shell completions below a folder, or removes them from it.
# `check` only finds out whether the folder may be written.
# Usage: scripts/place.sh check|install|remove FOLDER
set -euo pipefail
umask 022

usage() {
    echo "usage: scripts/place.sh check|install|remove FOLDER" >&2
    exit 2
}

[ $# -eq 2 ] && [ -n "$2" ] || usage
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make_files() { # PROGRAM
    "$(dirname "$0")/package/files.sh" "$1" "$work/files"
}

# Removes the manual pages of an older version, whose commands may have had other names.
remove_pages() { # FOLDER
    rm -f "$1"/share/man/man1/imbrex.1 "$1"/share/man/man1/imbrex-*.1
}

case $1 in
    check)
        # The nearest folder above that exists must be writable.
        folder=$2
        while [ ! -e "$folder" ]; do
            folder=$(dirname "$folder")
        done
        [ -d "$folder" ] && [ -w "$folder" ] || {
            echo "scripts/place.sh: $folder cannot be written: give PREFIX=FOLDER (PREFIX=\$HOME/.local), or be root" >&2
            exit 1
        }
        ;;
    install)
        program=${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/release/imbrex
        [ -x "$program" ] || {
            echo "scripts/place.sh: $program is not here: make build" >&2
            exit 1
        }
        make_files "$program"
        mkdir -p "$2"
        remove_pages "$2"
        # A program that runs meanwhile keeps its file.
        cp -R --no-preserve=ownership --remove-destination "$work/files/." "$2/"
        echo "installed: $2/bin/imbrex, $(find "$work/files/share/man" -type f | wc -l) manual pages, completions for bash, zsh and fish"
        case ":$PATH:" in
            *":${2#"${DESTDIR:-}"}/bin:"*) ;;
            *) echo "add ${2#"${DESTDIR:-}"}/bin to PATH to call it as imbrex" ;;
        esac
        ;;
    remove)
        [ -x "$2/bin/imbrex" ] || {
            echo "scripts/place.sh: $2/bin/imbrex is not here: nothing is removed" >&2
            exit 1
        }
        # The program that lies there tells the names of its files.
        make_files "$2/bin/imbrex"
        (cd "$work/files" && find . -type f) | while read -r file; do
            rm -f "$2/$file"
        done
        remove_pages "$2"
        echo "removed: $2/bin/imbrex, its manual pages and completions"
        ;;
    *) usage ;;
esac
