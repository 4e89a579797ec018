#!/bin/sh
# Installs what build and tests need, builds everything and runs every test:
#   scripts/test.sh [flags of ctest, e.g. -R physics]
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
install_packages $build_packages $test_packages
cmake --preset release -DSHARDPLAN_BUILD_TESTS=ON $(launcher)
cmake --build build/release
ctest --preset release "$@"
