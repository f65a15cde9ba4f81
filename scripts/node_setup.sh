#!/usr/bin/env bash
# Sets a rented node up: needs Python 3.11 to 3.13 and, for a GPU, its driver; no compiler, no CUDA toolkit, no root.
#
#   bash node_setup.sh [--check] [--cpu] [WHEEL]
#
# WHEEL is gbt-dyno built beforehand (`pip wheel --no-deps .`); by default the newest gbt_dyno-*.whl beside this script.
#   --check   say what would be done, and do nothing
#   --cpu     for a machine without a GPU: no CUDA libraries, probed for its CPU
#
# Run it again after any failure: what is done is not done twice. Environment: DYNO_HOME (default ~/gbt-dyno), PYTHON.
# Exit code: that of `dyno probe` (0 accepted, 4 rejected: hand the node back), or 1 if the setup failed, 2 for usage.
set -euo pipefail

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | sed '$d'; }

die() {
  echo "node_setup: $1" >&2
  exit "${2:-1}"
}

check_only=no target=gpu wheel=""
for argument in "$@"; do
  case $argument in
    --check) check_only=yes ;;
    --cpu) target=cpu ;;
    -h | --help) usage && exit 0 ;;
    -*) die "unknown option '$argument': --check, --cpu, --help" 2 ;;
    *)
      [ -z "$wheel" ] || die "one wheel is enough (found '$wheel' and '$argument')" 2
      wheel=$argument
      ;;
  esac
done

home=${DYNO_HOME:-$HOME/gbt-dyno}
venv=$home/venv

# Does it, or with --check says it.
run() {
  if [ "$check_only" = yes ]; then
    printf 'would run:'
    printf ' %q' "$@"
    printf '\n'
  else
    "$@"
  fi
}

# A Python that can make environments, of the version that the wheel's name asks for (cp311 is 3.11).
find_python() {
  local minor candidate
  [[ $(basename "$wheel") =~ -cp3([0-9]+)- ]] || die "$wheel does not name its Python: build it with 'pip wheel'" 2
  minor=${BASH_REMATCH[1]}
  for candidate in ${PYTHON:+"$PYTHON"} "python3.$minor" python3 python; do
    if "$candidate" -c "import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, $minor))" 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "the wheel is for Python 3.$minor, which is not here: apt-get install python3.$minor-venv, set PYTHON, or build it anew"
}

# The newest CUDA the driver knows, by the driver itself: nvidia-smi is missing in some images.
driver_cuda_major() {
  "$1" - <<'PYTHON'
import ctypes, sys
try:
    version = ctypes.c_int()
    failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
except (OSError, AttributeError):
    sys.exit(1)
if failed or not version.value:
    sys.exit(1)
print(version.value // 1000)
PYTHON
}

newest_wheel() {
  local here found newest=""
  here=$(cd "$(dirname "$0")" && pwd)
  for found in "$here"/gbt_dyno-*.whl "$here"/../gbt_dyno-*.whl; do
    if [ -f "$found" ] && { [ -z "$newest" ] || [ "$found" -nt "$newest" ]; }; then newest=$found; fi
  done
  [ -n "$newest" ] || die "no gbt_dyno-*.whl beside this script: build one with 'pip wheel --no-deps .' and copy it here"
  echo "$newest"
}

# A variable of the container's first process, where it may be read.
# shellcheck disable=SC2329  # as below
of_the_image() { { tr '\0' '\n' 2>/dev/null </proc/1/environ || true; } | sed -n "s/^$1=//p"; }

# What sshd keeps from a login: where the image's own process found its libraries and its GPU. Names are listed here
# one by one, so that no token which the provider passes in the environment reaches a file.
# shellcheck disable=SC2329  # called through run
keep_environment() {
  local name value
  {
    echo "# Written by node_setup.sh: source it in a shell that sshd opened."
    for name in LD_LIBRARY_PATH CUDA_HOME CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES; do
      value=${!name:-$(of_the_image "$name")}
      if [ -n "$value" ]; then printf 'export %s=%q\n' "$name" "$value"; fi
    done
    printf 'export DYNO_RESULTS_DIR=%q\n' "$home/results"
    # shellcheck disable=SC2016  # PATH is that of whoever sources it
    printf 'export PATH=%q:"$PATH"\n' "$venv/bin"
  } >"$home/env.sh.part"
  mv "$home/env.sh.part" "$home/env.sh"
}

[ -n "$wheel" ] || wheel=$(newest_wheel)
[ -f "$wheel" ] || die "no such wheel: $wheel" 2
python=$(find_python)
wheel=$(cd "$(dirname "$wheel")" && pwd)/$(basename "$wheel")

extras=peers
if [ "$target" = gpu ]; then
  major=$(driver_cuda_major "$python") ||
    die "no NVIDIA driver answers here (libcuda.so.1): hand the node back, or give --cpu for a machine without a GPU"
  [ "$major" -ge 12 ] || die "the driver knows CUDA $major at most and 12 is needed: hand the node back"
  if [ "$major" -gt 13 ]; then major=13; fi
  extras=cuda$major,peers-cuda$major,bonsai
fi

echo "node_setup: $python, $(basename "$wheel")[$extras], into $home"
run mkdir -p "$home"
[ -x "$venv/bin/python" ] || run "$python" -m venv "$venv"
# xgboost's four distributions are one Python package: another one left behind would shadow the right one.
for other in xgboost xgboost-cpu xgboost-cu12 xgboost-cu13; do
  if [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip show --quiet "$other" 2>/dev/null; then
    case $extras:$other in
      peers:xgboost-cpu | cuda12*:xgboost-cu12 | cuda13*:xgboost) ;;
      *) run "$venv/bin/python" -m pip uninstall --quiet --yes "$other" ;;
    esac
  fi
done
run "$venv/bin/python" -m pip install --quiet "${wheel}[$extras]"
# A wheel built anew has the version of the one before: pip would keep that.
run "$venv/bin/python" -m pip install --quiet --no-deps --force-reinstall "$wheel"
run keep_environment
echo "node_setup: in every new shell: source $home/env.sh"

if [ "$check_only" = yes ]; then
  run "$venv/bin/dyno" probe --for "$target"
  exit 0
fi
# shellcheck disable=SC1091
. "$home/env.sh"
status=0
"$venv/bin/dyno" probe --for "$target" || status=$?
[ "$status" -ne 4 ] || echo "node_setup: rejected. Keep the reasons (dyno probe --json) and hand the node back." >&2
exit "$status"
