#!/bin/sh
# Rewrites the golden cases with what the program prints now; review the difference before committing it.
#   scripts/update_golden.sh [BUILD_DIR [case...]]       BUILD_DIR: default build/dev
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/build/dev}
[ $# -gt 0 ] && shift
cmake --build "$build" --target golden_runner shardplan_cli
runner=$(find "$build" -name golden_runner -type f | head -n 1)
"$runner" "$build/shardplan" "$here" "$here/tests/golden/cases" --update "$@"
git -C "$here" --no-pager diff --stat -- tests/golden/cases
