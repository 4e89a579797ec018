#!/bin/sh
# What one `shardplan estimate` costs from start to exit: at most 10 ms and 20 MiB resident.
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
for topic in bubble qlora activations checkpointing; do
  printf '%-5s ' "$topic"
  build/release/bench/process_bench --runs "${RUNS:-300}" --max-ms 10 --max-mib 20 build/release/shardplan explain "$topic"
done
