#!/bin/sh
# Fits configs/timing/constants.json to the measured steps of tests/evidence, from their priors, and writes it:
#   scripts/fit_timing.sh            fits and writes; then build again
#   scripts/fit_timing.sh --score    prints the error of every source with the constants as they are
#   scripts/fit_timing.sh --tables   writes docs/validation_timing.json: every source with constants fitted without it,
#                                    and without one term at a time (minutes)
set -eu
cd "$(dirname "$0")/.."
cmake --preset release -DSHARDPLAN_BUILD_BENCH=ON >/dev/null
cmake --build build/release --target fit_timing >/dev/null
fit() { build/release/bench/fit_timing configs tests/evidence/measured_time.jsonl "$@"; }
case ${1:-} in
  --score) fit ;;
  --tables)
    {
      echo '{'
      printf '"constants": "%s",\n' "$(sha256sum <configs/timing/constants.json | cut -c1-16)"
      echo '"left_out": {'
      comma=""
      fit | sed -n 's/^\([a-z0-9-]*\)  *[0-9]*  mean .*/\1/p' | while read -r source; do
        left=$(fit --fit --from-priors --leave-out "$source" | sed -n "s/^$source  *[0-9]*  mean  *\\([0-9.]*\\)%.*/\\1/p" | tail -n 1)
        printf '%s  "%s": %s' "$comma" "$source" "$left"
        comma=",
"
      done
      printf '\n},\n"without": '
      fit --ablate
      echo '}'
    } >docs/validation_timing.json.new
    mv docs/validation_timing.json.new docs/validation_timing.json
    ;;
  "") fit --fit --from-priors --write ;;
  *)
    sed -n '2,6p' "$0" >&2
    exit 2
    ;;
esac
