#!/bin/sh
# What a CI job and a what-if cost on one core: check of 1,000 run files at most 2 s, a sweep of 10,000 points at most 1 s.
#   scripts/bench_gate.sh
# Builds the release program and bench/process_bench into build/release.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
{
  cmake --preset release -DSHARDPLAN_BUILD_BENCH=ON $(launcher)
  cmake --build build/release --target shardplan_cli process_bench
} >&2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The example runs over and over; one in ten misses a requirement or does not fit, so that a fix is looked for.
i=0
while [ $i -lt 1000 ]; do
  for file in configs/runs/*.json tests/check/old.json tests/check/big.json tests/check/best.json tests/check/old.json; do
    [ $i -lt 1000 ] || break
    cp "$file" "$folder/$(printf %04d $i).json"
    i=$((i + 1))
  done
done
pin=""
if command -v taskset >/dev/null 2>&1; then pin="taskset -c 0"; fi
bench="$pin build/release/bench/process_bench --runs ${RUNS:-10}"
run=configs/runs/llama-3.1-70b-128xh100.json
for format in text json junit; do
  printf 'check of 1,000 files, %-6s ' "$format"
  $bench --max-ms 2000 build/release/shardplan check "$folder" --format "$format"
done
for format in text json csv; do
  printf 'sweep of 10,000 points, %-4s ' "$format"
  $bench --max-ms 1000 build/release/shardplan sweep "$run" --vary seq=1024..102400+1024 --vary gbs=64..6400+64 \
    --format "$format"
done
