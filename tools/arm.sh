#!/bin/sh
# arm.sh -- cross-compile for aarch64 and run the tests of the kernels there under qemu-user, as a processor with all extensions
# and as one with none. Skips with a sentence, exit status 0, where the compiler, the emulator or a library is missing.
#   ARM_CC    the compiler (aarch64-linux-gnu-gcc)
#   ARM_ROOT  a folder that arm64 packages are unpacked in (dpkg -x), where the system has them not as a second architecture
#   BUILD     where to build; MAKE, JOBS
set -u

MAKE=${MAKE:-make}
BUILD=${BUILD:-build/arm}
JOBS=${JOBS:-$(nproc 2>/dev/null || echo 1)}
ARM_CC=${ARM_CC:-aarch64-linux-gnu-gcc}
ARM_ROOT=${ARM_ROOT:-}
TESTS='test_kernels test_kernels_attention test_kernels_layer test_kernels_rope test_kernels_sample test_kernels_state
test_kernels_token test_spec_verify test_team test_processor'

skip() {
    echo "arm: skipped, $1"
    exit 0
}

# arm.sh --one FOLDER QEMU CPU PROGRAM: one of them, which says nothing when all is well.
if [ "${1:-}" = --one ]; then
    log=$2/$4-$(basename "$5")
    if "$3" -cpu "$4" "$5" >"$log" 2>&1 </dev/null; then
        echo "$4 $(basename "$5"): $(grep -c '^\[ *OK \]' "$log") passed"
    else
        cat "$log"
        echo "$4 $(basename "$5"): failed" | tee -a "$2/failed"
    fi
    exit 0
fi

command -v "$ARM_CC" >/dev/null 2>&1 || skip "there is no $ARM_CC (package gcc-aarch64-linux-gnu)"
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || skip "there is no qemu-aarch64 (package qemu-user)"
libs=usr/lib/aarch64-linux-gnu
flags="-isystem $ARM_ROOT/usr/include -isystem $ARM_ROOT/usr/include/aarch64-linux-gnu"
where="-L$ARM_ROOT/$libs -Wl,-rpath-link,$ARM_ROOT/$libs"
if [ -z "$ARM_ROOT" ]; then flags='' where=''; else export QEMU_LD_PREFIX="$ARM_ROOT"; fi
export PKG_CONFIG_LIBDIR="$ARM_ROOT/$libs/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$ARM_ROOT"
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' HUP INT TERM
# shellcheck disable=SC2086
for lib in json-c gsl sqlite3 cmocka gmp flint; do
    echo 'int main(void) { return 0; }' | "$ARM_CC" $where -x c -o "$folder/a" - -Wl,--no-as-needed "-l$lib" 2>/dev/null ||
        skip "there is no lib$lib of arm64 (lib$lib-dev:arm64, or unpacked in \$ARM_ROOT)"
done
"$qemu" "$folder/a" 2>/dev/null || skip "$qemu finds no libraries of arm64"

programs=
for t in $TESTS; do programs="$programs $BUILD/tests/$t"; done
# shellcheck disable=SC2086
"$MAKE" -j"$JOBS" CC="$ARM_CC" HOSTCC=cc NVCC= SAN= BUILD="$BUILD" CPPFLAGS="$flags" LDFLAGS="$where" $programs || exit 1
for cpu in max cortex-a72; do
    for p in $programs; do echo "$cpu $p"; done
done | xargs -P "$JOBS" -n 2 sh "$0" --one "$folder" "$qemu"
[ ! -s "$folder/failed" ]
