#!/bin/sh
# deps.sh [base] [dev] -- have what the build needs. Each thing is looked for by what it gives (a program, a header, a
# library that pkg-config finds), so other packages that give the same will do; what is missing is installed with apt-get
# when that is possible, else the command to run is printed and the exit status is 1.
set -u

have_command() { command -v "$1" >/dev/null 2>&1; }
have_library() { have_command pkg-config && pkg-config --exists "$1"; }
have_libc() { have_command cc && echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1; }
have_flint() { have_command cc && echo '#include <flint/fmpz_mpoly.h>' | cc -E - >/dev/null 2>&1; }
# Loaded while running, so no header is needed.
have_blas() {
    for so in libopenblas.so.0 libblis.so.4; do
        [ -n "$(find /usr/lib /usr/lib64 /usr/local/lib /lib -name "$so" 2>/dev/null | head -n 1)" ] && return 0
    done
    return 1
}
have_fuzzer() { have_command clang && [ -n "$(find "$(clang -print-resource-dir)/" -name 'libclang_rt.fuzzer*' 2>/dev/null)" ]; }

missing=
need() { # need PACKAGE TEST...
    package=$1
    shift
    case " $missing " in *" $package "*) return ;; esac
    "$@" || missing="$missing $package"
}

[ $# -gt 0 ] || set -- base
for set in "$@"; do
    case $set in
    base)
        need gcc have_command cc
        need libc6-dev have_libc
        need make have_command make
        need pkg-config have_command pkg-config
        need libjson-c-dev have_library json-c
        need libgsl-dev have_library gsl
        need libflint-dev have_flint
        need libgmp-dev have_library gmp
        need libsqlite3-dev have_library sqlite3
        need libcmocka-dev have_library cmocka
        need gnuplot-nox have_command gnuplot
        need libopenblas0 have_blas
        need git have_command git
        ;;
    dev)
        need gcc have_command gcc
        need clang have_command clang
        need clang-format have_command clang-format
        need libclang-rt-14-dev have_fuzzer
        need valgrind have_command valgrind
        ;;
    *)
        echo "deps.sh: $set: wanted base or dev" >&2
        exit 2
        ;;
    esac
done
[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" != 0 ] || ! have_command apt-get; then
    echo "Missing, by their names in Debian 12:$missing" >&2
    echo "Install with: sudo apt-get update && sudo $install" >&2
    exit 1
fi
echo "Installing$missing"
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# The lists may be older than the archive: on failure, fetch them and try once more.
# shellcheck disable=SC2086
if ! $install >"$log" 2>&1 </dev/null && ! { apt-get update && $install; } >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    echo "Could not run: apt-get update && $install" >&2
    exit 1
fi
