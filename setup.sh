#!/usr/bin/env bash
# One command from a fresh Debian or Ubuntu machine to an answer:
#
#   ./setup.sh train configs/heat.toml [options of pinn-train]   install what is missing, build, train
#   ./setup.sh test                                              install, build, run all tests
#   ./setup.sh build                                             install, build into build/
#   ./setup.sh check                                             the tests under sanitizers, with gcc and clang, CPU only
#   ./setup.sh references                                        compute data/*.h5 anew (needs FFTW, which it installs)
#
# Packages come from apt (root or sudo is needed only when one is missing). The CUDA executors are built when the CUDA Toolkit
# (nvcc) is found, on PATH or under /usr/local/cuda; without it the build is CPU-only and says so.
set -euo pipefail
cd "$(dirname "$0")"

packages=(cmake ninja-build gcc g++ libc6-dev make pkg-config libhdf5-dev libsleef-dev librandom123-dev
          libtomlplusplus-dev check)

install() {
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    echo "setup: installing ${missing[*]}"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { echo "setup: install these packages as root, then run again: ${missing[*]}" >&2; exit 1; }
        as_root=(sudo)
    fi
    # Someone else's lock (unattended upgrades on a new machine) is waited for.
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
    "${apt[@]}" update
    "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null
}

build() { # preset [target]
    cmake --preset "$1" -Wno-dev | grep -E '^-- (CUDA|no CUDA)' || true
    cmake --build --preset "$1" -- ${2:+"$2"}
}

case "${1:-}" in
train)
    shift
    install "${packages[@]}"
    build release pinn-train >&2
    exec build/bin/pinn-train "$@"
    ;;
test)
    install "${packages[@]}"
    build release
    ctest --preset release
    ;;
build)
    install "${packages[@]}"
    build release
    ;;
check)
    install "${packages[@]}" clang libclang-rt-14-dev libomp-dev
    for preset in asan clang; do
        build "$preset"
        ctest --preset "$preset"
    done
    ;;
references)
    install "${packages[@]}" libfftw3-dev
    cmake --preset release -DPINN_REFERENCES=ON >/dev/null
    cmake --build --preset release --target references
    ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
