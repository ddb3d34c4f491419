# SPDX-License-Identifier: BSD-3-Clause
# Sourced by devtools/run and devtools/test: say, die, prepare, cpus, build_progress.

T0=$(date +%s)

say() {
  printf '[%4ds] %s\n' $(($(date +%s) - T0)) "$*"
}

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Prints the present name of the package that devtools/packages calls $1, nothing if there is none.
# See its head.
package_here() {
  case $1 in *-14*) ;; *) echo "$1"; return ;; esac
  # shellcheck disable=SC1091
  if (. "${OS_RELEASE:-/etc/os-release}" && [ "$ID" = debian ] && [ "${VERSION_ID:-99}" -gt 12 ]); then
    case $1 in
    clang-format-14) ;;
    *) echo "$1" | sed 's/-14//' ;;
    esac
  else
    echo "$1"
  fi
}

# Prints the packages of group $1 (run, cross, quick, all, long) that are not installed; each group
# includes those before it.
missing_packages() {
  case $1 in
  run) groups="run" ;;
  cross) groups="run cross" ;;
  quick) groups="run quick" ;;
  all) groups="run quick cross all" ;;
  long) groups="run quick cross all long" ;;
  *) die "devtools/packages has no group $1" ;;
  esac
  [ "$(uname -m)" = x86_64 ] || groups=$(echo "$groups" | sed 's/ cross//')
  sed -e 's/#.*//' "$TOP/devtools/packages" | while read -r group pkg _; do
    pkg=$(package_here "$pkg")
    [ -n "$pkg" ] || continue
    case " $groups " in
    *" $group "*) ;;
    *) continue ;;
    esac
    state=$(dpkg-query -W -f '${db:Status-Status}' "$pkg" 2>/dev/null) || state=
    [ "$state" = installed ] || echo "$pkg"
  done
}

apt_get() {
  DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 \
    -o Dpkg::Use-Pty=0 "$@" </dev/null >"$APT_LOG" 2>&1
}

# Returns whether apt could install every package of the list $@.
apt_knows() {
  for p in "$@"; do
    apt-cache policy "$p" 2>/dev/null | grep -q 'Candidate: [^(]' || return 1
  done
}

# Installs the packages of group $1 that the machine lacks.
prepare() {
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: the packages of devtools/packages are taken as present"
    return 0
  fi
  # shellcheck disable=SC2046
  set -- $(missing_packages "$1")
  if [ $# -eq 0 ]; then
    say "packages: all installed"
    return 0
  fi
  if [ "$(id -u)" -ne 0 ]; then
    die "not root, and packages are missing. Run as root, or install them first:
  apt-get install --no-install-recommends $*"
  fi
  APT_LOG=$(mktemp)
  if ! apt_knows "$@"; then
    say "packages: apt-get update (the package lists are missing or old)"
    apt_get update || { cat "$APT_LOG"; die "apt-get update failed (above): is the mirror reachable?"; }
  fi
  say "packages: installing $*"
  if ! apt_get install --no-install-recommends "$@"; then
    say "packages: failed, once more after apt-get update"
    apt_get update || { cat "$APT_LOG"; die "apt-get update failed (above): is the mirror reachable?"; }
    apt_get install --no-install-recommends "$@" ||
      { cat "$APT_LOG"; die "apt-get install failed (above)"; }
  fi
  rm -f "$APT_LOG"
  say "packages: installed"
}

# Prints the first $1 processors that this process may use, in the form of EAL's -l.
cpus() {
  sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr ',' '\n' |
    while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done | head -n "$1" | paste -s -d ,
}

# Builds the targets $2... in folder $1 with ninja, and shows the progress: ninja's own status line
# on a terminal, otherwise a line every 10 seconds. The log goes to $1/ninja.log; after a failure
# prints it and ends. BUILD_INTERVAL replaces the 10 seconds.
build_progress() {
  dir=$1
  shift
  if [ -t 1 ]; then
    ninja -C "$dir" "$@" || die "the build failed (above)"
    return 0
  fi
  NINJA_STATUS='[%f/%t] ' ninja -C "$dir" "$@" >"$dir/ninja.log" 2>&1 &
  ninja=$!
  trap 'kill "$ninja" 2>/dev/null' INT TERM
  waited=0
  while kill -0 "$ninja" 2>/dev/null; do
    sleep 1
    waited=$((waited + 1))
    [ $((waited % ${BUILD_INTERVAL:-10})) -eq 0 ] || continue
    steps=$(sed -n 's/^\[\([0-9]*\/[0-9]*\)\].*/\1/p' "$dir/ninja.log" | tail -n 1)
    say "build: ${steps:-0} steps"
  done
  trap - INT TERM
  wait "$ninja" || { cat "$dir/ninja.log"; die "the build failed (above)"; }
}
