#!/bin/sh
# Tidiness of the text files under version control: no trailing blanks, no tabs in sources, no folders of one machine.
set -eu
cd "$(dirname "$0")/.."
if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  echo "not a git checkout: not checked"
  exit 77
fi
status=0
complain() {
  if [ -n "$2" ]; then
    echo "$1"
    echo "$2" | head -20
    status=1
  fi
}
sources='*.cpp *.hpp *.cmake *CMakeLists.txt *.sh *.md *.json'
skip=':!tests/malformed/inputs :!tests/fuzz/corpus :!configs/models'
complain 'trailing blanks:' "$(git grep -nIE '[ 	]+$' -- $sources $skip || true)"
complain 'tabs:' "$(git grep -nIP '\t' -- '*.cpp' '*.hpp' '*CMakeLists.txt' '*.cmake' || true)"
complain 'folders of one machine:' "$(git grep -nIE '(/work|/home|/root)/[a-z]' -- $sources $skip ':!scripts/check_text.sh' || true)"
# What readers cannot look up: documents that are not in the tree.
strangers='(^|[^/a-z_])(activations|memory|timing|frameworks|ux|offload|peft|parallelism)\.md|contract|(^|[^a-z])the notes. |notes'"'"' (7B|numbers|own)'
complain 'documents that are not in the tree:' \
  "$(git grep -nIE "$strangers" -- 'src/*' 'include/*' 'apps/*' 'tests/*.cpp' 'tests/*.hpp' 'tests/*.py' scripts bench cmake docs README.md \
    CONTRIBUTING.md ':!scripts/check_text.sh' | grep -vE 'where the notes (need|go)' || true)"
complain 'sources and documents of more than 1000 lines:' \
  "$(git ls-files 'src/*.cpp' 'include/*.hpp' 'apps/*.cpp' 'docs/*.md' | xargs wc -l | awk '$2 != "total" && $1 > 1000' || true)"
exit $status
