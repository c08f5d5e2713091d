#!/usr/bin/env bash
# Writes all files of an installation below a folder: the program, its manual pages, its completions.
# Usage: scripts/package/files.sh PROGRAM FOLDER [ZSH_FOLDER]
#   ZSH_FOLDER  the folder below share for completions of zsh (zsh/site-functions)
set -euo pipefail
umask 022

[ $# -ge 2 ] || {
    echo "usage: scripts/package/files.sh PROGRAM FOLDER [ZSH_FOLDER]" >&2
    exit 2
}
program=$1 folder=$2 zsh=share/${3:-zsh/site-functions}
mkdir -p "$folder"/{bin,share/man/man1,share/bash-completion/completions,"$zsh",share/fish/vendor_completions.d}
"$program" man --quiet "$folder/share/man/man1" >/dev/null 2>&1 || {
    echo "imbrex: $program does not run: build it anew" >&2
    exit 1
}
install -m 755 "$program" "$folder/bin/imbrex"
"$program" completions bash >"$folder/share/bash-completion/completions/imbrex"
"$program" completions zsh >"$folder/$zsh/_imbrex"
"$program" completions fish >"$folder/share/fish/vendor_completions.d/imbrex.fish"
