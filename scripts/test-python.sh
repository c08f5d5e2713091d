#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it into a fresh virtual environment, and tests it there. Needs a network for pip,
# or skips itself and says so. Ends with a line of counts: `python: N passed, M failed`.
set -uo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
work=$target/python
# What the package is built with, and what its tests compare with.
build=(maturin)
beside=(perfetto pytest numpy pyarrow polars pandas duckdb matplotlib distributed nbclient ipykernel mypy)

python=""
for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "skipped: the Python package: no Python of 3.11 or newer with venv (apt-get install python3-venv)"
    exit 0
fi

rm -rf "$work"
mkdir -p "$work"
"$python" -m venv "$work/venv" || exit 1
if ! "$work/venv/bin/pip" install --quiet --disable-pip-version-check "${build[@]}" "${beside[@]}" 2>"$work/pip.log"; then
    echo "skipped: the Python package: pip cannot install ${build[*]} ${beside[*]}: $(tail -n 1 "$work/pip.log")"
    exit 0
fi

# The profile of the tests, whose dependencies are built already.
"$work/venv/bin/maturin" build --quiet --profile dev --locked --interpreter "$work/venv/bin/python" --out "$work/wheels" &&
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$work"/wheels/imbrex-*.whl || {
    echo "python: 0 passed, 1 failed (the wheel)"
    exit 1
}

[ -x "$target/debug/imbrex" ] || cargo build --quiet --locked --bin imbrex || exit 1
export IMBREX=${IMBREX:-$PWD/$target/debug/imbrex}
case $target in /*) export IMBREX=$target/debug/imbrex ;; esac

failed=0
echo "── types of the Python package"
"$work/venv/bin/mypy" --config-file pyproject.toml || failed=1
echo "── tests of the Python package"
# Away from the sources, so that what is tested is what was installed.
mkdir -p "$work/away/python"
cp -r python/tests python/notebooks "$work/away/python/"
cp -r docs README.md pyproject.toml "$work/away/"
(cd "$work/away" && ../venv/bin/python -m pytest -q -ra -p no:cacheprovider) 2>&1 | tee "$work/pytest.log"
[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
count() { tail -n 1 "$work/pytest.log" | grep -oE "[0-9]+ $1" | grep -oE '[0-9]+' || echo 0; }
broken=$(count failed)
[ "$failed" -eq 0 ] || [ "$broken" -gt 0 ] || broken=1
grep '^SKIPPED' "$work/pytest.log" | sed 's/^SKIPPED/skipped:/'
echo "python: $(count passed) passed, $broken failed"
exit "$failed"
