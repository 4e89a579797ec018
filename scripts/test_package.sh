#!/bin/sh
# Builds the Debian packages and, where the tools are there, checks them with lintian and installs, runs and removes the
# program in a bare tree (as root):
#   scripts/test_package.sh [TREE]     TREE: a folder that debootstrap made
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
{
  cmake --preset release $(launcher)
  cmake --build build/release
  (cd build/release && rm -f ./*.deb && cpack -G DEB)
} >&2
package=$(ls build/release/shardplan_*.deb)
if command -v lintian >/dev/null 2>&1; then
  lintian --allow-root --fail-on error build/release/*.deb
  echo "lintian: no errors"
fi
tree=${1:-}
[ -n "$tree" ] || exit 0
undo() {
  rm -f "$tree/tmp/shardplan.deb" "$tree/tmp/run.json"
  for folder in $mounted; do umount "$tree/$folder" || true; done
}
mounted=""
trap undo EXIT
mountpoint -q "$tree/proc" || { mount -t proc proc "$tree/proc" && mounted="proc"; }
mountpoint -q "$tree/dev" || { mount --bind /dev "$tree/dev" && mounted="dev $mounted"; }
cp "$package" "$tree/tmp/shardplan.deb"
cp configs/runs/llama-3.1-70b-128xh100.json "$tree/tmp/run.json"
inside() { chroot "$tree" env -i HOME=/tmp LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
named() { inside sh -c 'find / -xdev -name "*shardplan*" -not -path "/proc/*" -not -path "/tmp/*" -not -path "/var/log/*" | sort'; }
before=$(named)
inside dpkg -i /tmp/shardplan.deb
inside shardplan --version
inside shardplan check /tmp/run.json
inside sh -c 'shardplan schema run | grep -q "shardplan run file"'
inside bash -c '. /usr/share/bash-completion/completions/shardplan; COMP_WORDS=(shardplan sw); COMP_CWORD=1; _shardplan; test "${COMPREPLY[*]}" = sweep'
inside sh -c 'gzip -dc /usr/share/man/man1/shardplan.1.gz | grep -q "^.TH SHARDPLAN"'
inside dpkg -P shardplan
after=$(named)
if [ "$after" != "$before" ]; then
  echo "left behind: $after" >&2
  exit 1
fi
echo "installed, ran and was removed in $tree"
