#!/bin/sh
# readme.sh -- every ```console block of README.md and docs/*.md is a case (see cli.sh): what stands under a command is
# what it prints, lines that begin "ridge: " on standard error. Each block runs in an empty directory with the
# checkout's configs/ in it.
set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

for page in "$here"/../../README.md "$here"/../../docs/*.md; do
    awk '
        /^```console$/ { inside = 1; printf "\n# line %d\n$ ln -s \"$ROOT/configs\" configs\n", NR; next }
        /^```$/ { inside = 0; next }
        !inside { next }
        /^[$>] / || $0 == "..." { print; next }
        /^ridge: / { print "! " $0; next }
        { print $0 == "" ? "|" : "| " $0 }' "$page" >"$work/$(basename "$page").case"
done
set --
for case in "$work"/*.case; do
    if [ -s "$case" ]; then set -- "$@" "$case"; fi
done
sh "$here/../cli.sh" "$@"
