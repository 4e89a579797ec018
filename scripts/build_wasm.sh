#!/bin/sh
# Builds the program as WebAssembly with Debian's Emscripten and holds it against the native one: the same bytes on both
# streams and the same exit status for every run of configs/runs and for a sample of the other commands, in node.
#   scripts/build_wasm.sh [--no-compare]      the program: build/wasm/shardplan.js
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
install_packages $build_packages emscripten nodejs
cmake --preset release $(launcher) >/dev/null
cmake --build build/release --target shardplan_cli shardplan_resample
cmake --preset wasm
cmake --build build/wasm --target shardplan_cli
[ "${1:-}" != --no-compare ] || exit 0

export LC_ALL=C.UTF-8
unset COLUMNS NO_COLOR 2>/dev/null || true
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
compared=0
different=0
same() {
  native=0
  build/release/shardplan "$@" >"$folder/native.out" 2>"$folder/native.err" || native=$?
  wasm=0
  node build/wasm/shardplan.js "$@" >"$folder/wasm.out" 2>"$folder/wasm.err" || wasm=$?
  compared=$((compared + 1))
  if [ "$native" != "$wasm" ] || ! cmp -s "$folder/native.out" "$folder/wasm.out" ||
    ! cmp -s "$folder/native.err" "$folder/wasm.err"; then
    different=$((different + 1))
    echo "differs: shardplan $* (exit $native and $wasm)" >&2
    diff "$folder/native.out" "$folder/wasm.out" | head -5 | cut -c1-200 >&2 || true
    diff "$folder/native.err" "$folder/wasm.err" | head -5 | cut -c1-200 >&2 || true
  fi
}

example=configs/runs/llama-3.1-70b-128xh100.json
for run in configs/runs/*.json; do
  same estimate "$run" --color never
  same estimate "$run" --json
done
for format in csv markdown; do same estimate "$example" --format $format; done
same estimate "$example" --detail --color never
same estimate "$example" --explain activ@0 --color never
same estimate "$example" --tp 3 --color never
same explain bubble --color never
same check configs/runs --color never
same compare "$example" configs/runs/llama-2-70b-128xa100.json --color never
same schedule "$example" --color never
same sweep "$example" --vary mbs=1,2 --vary recompute=none,full --color never
same solve seq "$example" --color never
same list gpus --json
same schema run
echo "$compared command lines, $different differ"
[ "$different" = 0 ]
