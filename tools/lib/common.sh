# shellcheck shell=bash disable=SC2034
# Shared by the scripts in tools/: source it after `set -euo pipefail`. Leaves the working
# directory at the repository root.
#
#   say TEXT...                  a progress line
#   die TEXT...                  the reason, then exit 1
#   step NAME COMMAND...         runs quietly; its output is shown only when it fails
#   install_missing GROUP...     the packages of tools/packages.txt that are not installed yet
#
# RAILYARD_NO_INSTALL=1 keeps install_missing from installing anything; RAILYARD_JOBS=N overrides
# the number of parallel jobs (all processors).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1
logs=$root/build/logs
jobs_count=${RAILYARD_JOBS:-$(nproc 2>/dev/null || echo 2)}

say() { printf '== %s\n' "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# One progress line with the time it took. On failure: the end of the log and where the rest is.
step() {
  local name=$1 log start=$SECONDS
  shift
  mkdir -p "$logs"
  log=$logs/$(printf '%s' "$name" | tr -c 'A-Za-z0-9.-' '_').log
  if "$@" >"$log" 2>&1; then
    say "$name ($((SECONDS - start)) s)"
  else
    say "$name: FAILED after $((SECONDS - start)) s"
    tail -n 60 "$log" >&2
    die "$name failed; all of its output: ${log#"$root"/}"
  fi
}

packages_of() {
  local group
  for group in "$@"; do
    awk -v group="$group" '$1 == group {print $2}' "$root/tools/packages.txt"
  done
}

install_missing() {
  local -a missing=() as_root=() apt=(apt-get -qq -o DPkg::Lock::Timeout=300)
  local package
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "not a Debian system: taking for granted what tools/packages.txt lists ($*)"
    return 0
  fi
  while read -r package; do
    # ${...} belongs to dpkg-query here
    # shellcheck disable=SC2016
    dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q 'ok installed' ||
      missing+=("$package")
  done < <(packages_of "$@")
  ((${#missing[@]})) || return 0
  if [[ ${RAILYARD_NO_INSTALL:-0} == 1 ]]; then
    say "not installed (RAILYARD_NO_INSTALL=1): ${missing[*]}"
    return 0
  fi
  if ((EUID != 0)); then
    as_root=(sudo)
    [[ -t 0 ]] || as_root+=(-n)
    "${as_root[@]}" true 2>/dev/null || die "these packages are missing and only root can install" \
      "them; run: apt-get install ${missing[*]}"
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  step "updating the package list" "${as_root[@]}" "${apt[@]}" update
  step "installing ${#missing[@]} packages" \
    "${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
}
