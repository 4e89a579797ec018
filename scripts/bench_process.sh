#!/bin/sh
# What one `shardplan estimate`, and `explain` of every topic, costs from start to exit: at most 10 ms and 20 MiB
# resident.
#   scripts/bench_process.sh [RUN.json]
# Builds the release program and bench/process_bench into build/release.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
run=${1:-configs/runs/llama-3.1-70b-128xh100.json}
{
  cmake --preset release -DSHARDPLAN_BUILD_BENCH=ON $(launcher)
  cmake --build build/release --target shardplan_cli process_bench
} >&2
printf '%-5s ' 'true'  # what starting any process costs here
build/release/bench/process_bench --runs "${RUNS:-300}" /bin/true
for format in text json; do
  printf '%-5s ' "$format"
  build/release/bench/process_bench --runs "${RUNS:-300}" --max-ms 10 --max-mib 20 \
    build/release/shardplan estimate "$run" --format "$format"
done
# Every topic of explain, the slowest three by CPU time; one above the limit fails.
topics=$(build/release/shardplan list topics --format csv | tail -n +2 | cut -d, -f2)
times=$(mktemp)
trap 'rm -f "$times"' EXIT
failed=0
for topic in $topics; do
  build/release/bench/process_bench --runs "${TOPIC_RUNS:-30}" --max-ms 10 --max-mib 20 \
    build/release/shardplan explain "$topic" >"$times.one" || failed=1
  sed -n "1s/^/$topic: /p" "$times.one" >>"$times"
done
rm -f "$times.one"
echo "$(wc -l <"$times") topics, the slowest:"
sed 's/.*(\([0-9.]*\) ms of CPU.*/\1 &/' "$times" | sort -rn | head -n 3 | cut -d' ' -f2-
exit $failed
