#!/bin/sh
# install.sh -- make install and uninstall, of what is built: everything is where its kind belongs, the program runs from there, and
# nothing is left afterwards. Prints TAP.
set -u

root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
RIDGE=${RIDGE:-$root/build/ridge}
case $RIDGE in /*) ;; *) RIDGE=$(pwd)/$RIDGE ;; esac
build=${RIDGE%/*}
command -v make >/dev/null 2>&1 && [ -x "$build/ridge-worker-cpu" ] || exit 77
to=$(mktemp -d) || exit 1
trap 'rm -rf "$to"' EXIT
trap 'exit 130' INT TERM
unset MAKEFLAGS MAKELEVEL

# What is built stays as it is, whatever its compiler and flags were.
run() { make -C "$root" -o all -o "$build/ridge" BUILD="$build" NVCC= DESTDIR="$to/stage dir" PREFIX=/opt/r "$@" >"$to/log" 2>&1; }
t=0 status=0
say() {
    t=$((t + 1))
    if [ "$1" = 0 ]; then echo "ok $t - $2"; return; fi
    status=1
    echo "not ok $t - $2"
    sed 's/^/# /' "$to/log"
}

run install
say $? "make install"
(cd "$to/stage dir/opt/r" && find . -type f | LC_ALL=C sort) >"$to/found" 2>"$to/log"
{
    echo ./bin/ridge ./bin/ridge-worker-cpu ./share/bash-completion/completions/ridge ./share/man/man1/ridge.1
    (cd "$root" && echo README.md LICENSE docs/*.md calc/MODEL.md probe/METHOD.md) | tr ' ' '\n' | sed 's|^|./share/doc/ridge/|'
} | tr ' ' '\n' | LC_ALL=C sort >"$to/wanted"
diff "$to/wanted" "$to/found" >"$to/log"
say $? "what is installed"
(cd / && "$to/stage dir/opt/r/bin/ridge" estimate -m llama-2-13b -g h100-sxm --only memory -f csv --columns weight_bytes) >"$to/log" 2>&1
grep -qx 26031728640 "$to/log"
say $? "the program needs nothing else"
(cd "$to/stage dir/opt/r/bin" && HOME=$to ./ridge probe list) 2>&1 | grep -q gemm
say $? "and finds its worker beside it"
run uninstall
say $? "make uninstall"
find "$to/stage dir" -type f >"$to/log"
[ ! -s "$to/log" ]
say $? "nothing is left"
run uninstall
say $? "nor does a second uninstall mind"
echo "1..$t"
exit $status
