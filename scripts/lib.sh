# Shared by the scripts: the packages that a build needs, and installing them where that is allowed.

# install_packages package...: installs what is missing on Debian and Ubuntu, as root or through sudo.
install_packages() {
  missing=""
  for package in "$@"; do
    if command -v dpkg-query >/dev/null 2>&1 &&
      dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed'; then
      continue
    fi
    missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "No apt-get here. Needed:$missing (other names elsewhere), or configure with -DSHARDPLAN_FETCH_DEPS=ON." >&2
    return 0
  fi
  as_root=""
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null 2>&1; then
      as_root="sudo"
    else
      echo "Not root and no sudo. Needed:$missing. Ask for: apt-get install$missing" >&2
      return 0
    fi
  fi
  echo "Installing:$missing" >&2
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive $as_root apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

build_packages="g++ cmake ninja-build libcli11-dev nlohmann-json3-dev libfmt-dev"
test_packages="catch2 git python3 libvalijson-dev libxml2-utils zsh fish libmuparser-dev"

# launcher: uses ccache where it is installed.
launcher() {
  if command -v ccache >/dev/null 2>&1; then echo "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"; fi
}
