#!/bin/sh
# Writes what the program prints now over every output that the tree keeps. Review the difference before committing it.
#   scripts/regenerate.sh [-B BUILD_DIR] [golden|pages|documents|validation ...]
# golden: tests/golden/cases; pages: tests/report/golden; documents: what README.md and docs/ show of commands;
# validation: docs/validation.md and its plots (minutes). Without words all of them, in this order.
# BUILD_DIR: default build/release, configured with tests.
set -eu
cd "$(dirname "$0")/.."
build=build/release
if [ "${1:-}" = -B ]; then
  build=$2
  shift 2
fi
[ $# -gt 0 ] || set -- golden pages documents validation
for what in "$@"; do
  case $what in
    golden)
      cmake --build "$build" --target golden_runner shardplan_cli >/dev/null
      "$build/tests/golden/golden_runner" "$build/shardplan" "$PWD" tests/golden/cases --update
      ;;
    pages)
      cmake --build "$build" --target report_test >/dev/null
      SHARDPLAN_UPDATE=1 "$build/tests/report/report_test" >/dev/null
      ;;
    documents)
      cmake --build "$build" --target documents_test >/dev/null
      SHARDPLAN_UPDATE=1 "$build/tests/style/documents_test" >/dev/null || true # it compares with what was
      ;;
    validation)
      cmake --build "$build" --target shardplan_cli >/dev/null
      python3 scripts/validation.py --bin "$build/shardplan"
      ;;
    *)
      sed -n '2,7p' "$0" >&2
      exit 2
      ;;
  esac
done
git --no-pager diff --stat
