#!/bin/sh
# Are the sources formatted as .clang-format says? Exit 77 (skipped) without clang-format 14, whose opinion counts:
# other versions break lines elsewhere. scripts/check_format.sh --fix formats.
set -eu
cd "$(dirname "$0")/.."
tool=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$tool" ] || ! "$tool" --version | grep -q 'version 14\.'; then
  echo "clang-format 14 is not installed: not checked"
  exit 77
fi
files() { find apps bench include src tests -name layers_broken -prune -o \( -name '*.cpp' -o -name '*.hpp' \) -print; }
if [ "${1:-}" = --fix ]; then
  files | xargs "$tool" -i
  exit 0
fi
unformatted=$(files | xargs "$tool" --dry-run 2>&1 | sed -n 's/:[0-9]*:[0-9]*: warning:.*//p' | sort -u)
if [ -n "$unformatted" ]; then
  echo "not formatted (scripts/check_format.sh --fix):"
  echo "$unformatted"
  exit 1
fi
