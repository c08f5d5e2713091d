#!/usr/bin/env bash
# Makes the pictures of the README, docs/figures/report-light.png and report-dark.png: the top of the report that the
# README's command writes, as Chromium shows it with either preference of colours. Takes the program and the browser.
set -euo pipefail
program=$(realpath "${1:-$(dirname "$0")/../target/release/imbrex}")
cd "$(dirname "$0")/.."
browser=${2:-chromium}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" simulate cloudphysics-w106 --limit 100000 --drive cassuto-307g+set-associative --drive cassuto-307g+s-blocks \
    --quiet --out "$work/results" >/dev/null
for scheme in light:1 dark:0; do
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,760 \
        --blink-settings=preferredColorScheme="${scheme#*:}" \
        --screenshot="$work/${scheme%:*}.png" "file://$work/results/report.html" >/dev/null 2>&1
    cp "$work/${scheme%:*}.png" "docs/figures/report-${scheme%:*}.png"
done
ls -l docs/figures/report-*.png
