#!/bin/sh
# Installs what the build needs, builds the program and estimates a published run:
#   scripts/run.sh [RUN.json] [flags of `shardplan estimate`]
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
install_packages $build_packages
{
  cmake --preset release -DSHARDPLAN_BUILD_TESTS=OFF $(launcher)
  cmake --build build/release --target shardplan_cli
} >&2
[ $# -gt 0 ] || set -- configs/runs/llama-3.1-70b-128xh100.json
status=0
build/release/shardplan estimate "$@" || status=$?
echo "The program is build/release/shardplan; it runs from any folder." >&2
exit $status
