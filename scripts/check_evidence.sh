#!/bin/sh
# Scores the program against measured runs and published facts that are kept outside this repository:
#   scripts/check_evidence.sh [FOLDER]
# FOLDER (or SHARDPLAN_EVIDENCE; default: ../shared) holds tools/*.py, evidence/ and cases/. SHARDPLAN names the program
# (default: build/release/shardplan). Prints the closing lines of each scorer; exits 1 when one misses its goal. Without
# the folder nothing is checked, with a message.
set -u
cd "$(dirname "$0")/.."
folder=${1:-${SHARDPLAN_EVIDENCE:-../shared}}
program=${SHARDPLAN:-build/release/shardplan}
if [ ! -d "$folder/tools" ]; then
  echo "No evidence at $folder: nothing checked."
  exit 0
fi
if [ ! -x "$program" ]; then
  echo "$program is not built (scripts/run.sh)" >&2
  exit 2
fi

jobs=$(nproc 2>/dev/null || echo 2)
failed=""
score() {
  name=$1
  tool=$2
  shift 2
  echo "== $name"
  begin=$(date +%s)
  output=$(python3 "$folder/tools/$tool" "$@" 2>&1)
  status=$?
  echo "$output" | tail -n "${LINES_SHOWN:-8}"
  echo "   exit $status, $(($(date +%s) - begin)) s"
  [ "$status" = 0 ] || failed="$failed $name"
}

score models models.py --bin "$program" --jobs "$jobs"
score cases cases.py --bin "$program" --jobs "$jobs"
score autograd autograd.py --bin "$program" --jobs "$jobs"
score schedules schedules.py --bin "$program" --jobs "$jobs"
score memory evidence.py score --bin "$program" --what memory "$folder/evidence/memory/rows.jsonl"
score time evidence.py score --bin "$program" --what time "$folder/evidence/throughput/rows.jsonl"

if [ -n "$failed" ]; then
  echo "Goals missed:$failed"
  exit 1
fi
echo "Every goal is met."
