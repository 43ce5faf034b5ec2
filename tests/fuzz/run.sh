#!/bin/sh
# run.sh TARGET... -- run libFuzzer programs one after the other, FUZZ_S seconds each (600), UNIT_S at most for one input (10;
# more on a busy machine), in the folder BUILD
# (build/fuzz). Target fuzz_X starts from tests/fuzz/seeds/fuzz_X where that exists, and always from configs/*/*.json; words
# of the sources and of those files are its dictionary. The corpus found is kept between runs, and what failed is left as
# BUILD/fuzz_X-*. Exit status 1 when a target found something.
set -u

BUILD=${BUILD:-build/fuzz}
FUZZ_S=${FUZZ_S:-600}
UNIT_S=${UNIT_S:-10}
here=$(dirname "$0")
status=0
[ $# -gt 0 ] || { echo "run.sh: no target" >&2; exit 2; }

mkdir -p "$BUILD/seeds" || exit 1
for f in configs/*/*.json; do
    [ -f "$f" ] || continue
    folder=${f%/*}
    cp "$f" "$BUILD/seeds/${folder##*/}-${f##*/}"
done
cat calc/model/*.c configs/*/*.json | grep -oE '"[A-Za-z0-9_.-]{2,40}"' | sort -u >"$BUILD/words.dict"
printf '%s\n' '"Infinity"' '"NaN"' '"-1"' '"1e308"' '"9223372036854775807"' '"\\u0000"' '"null"' '"true"' >>"$BUILD/words.dict"
printf '%s\n' '"sum("' '"log("' '"ln{"' '"exp("' '"sqrt{"' '"min("' '"ceil("' '"\\\\sum_{i=1}^{"' '", i, 1, "' >>"$BUILD/words.dict"

for target in "$@"; do
    name=${target##*/}
    corpus=$BUILD/corpus-$name
    mkdir -p "$corpus"
    printf '%s for %s s\n' "$name" "$FUZZ_S"
    set -- "$corpus" "$BUILD/seeds"
    [ -d "$here/seeds/$name" ] && set -- "$@" "$here/seeds/$name"
    "$target" -max_total_time="$FUZZ_S" -timeout="$UNIT_S" -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        -dict="$BUILD/words.dict" -artifact_prefix="$BUILD/$name-" "$@" >"$BUILD/$name.log" 2>&1
    rc=$?
    if [ "$rc" -ne 0 ]; then
        status=1
        tail -n 60 "$BUILD/$name.log"
        printf '%s: FAILED, exit status %s; all of it in %s\n' "$name" "$rc" "$BUILD/$name.log"
    else
        sed -n 's/^stat::number_of_executed_units: */  inputs run: /p' "$BUILD/$name.log"
        sed -n 's/^#[0-9]*.*DONE *\(cov: [0-9]*\).*/  \1 edges/p' "$BUILD/$name.log"
    fi
done
exit $status
