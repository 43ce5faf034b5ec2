#!/bin/sh
# run.sh [PROGRAM...] -- run test programs and count their test functions. Without arguments: all of build/tests, the
# command-line cases and scripts of tests/cli with them in either case. Every program prints TAP (cmocka when told so, cli.sh
# always). Quiet when all is well; a program with a failure is shown in full. A planned test that did not report, a crash,
# a time-out or a bad exit status without a failed test count as failures.
#   RIDGE      the program under test (build/ridge)
#   TIMEOUT_S  for each program (600)
#   JOBS       programs at a time (as many as there are processors)
# The last line is "N passed, N failed, N skipped"; exit status 1 when any failed or none ran.
set -u

RIDGE=${RIDGE:-build/ridge}
TIMEOUT_S=${TIMEOUT_S:-600}
JOBS=${JOBS:-$(nproc 2>/dev/null || echo 1)}
export RIDGE CMOCKA_MESSAGE_OUTPUT=tap
unset CMOCKA_XML_FILE CMOCKA_TEST_ABORT
# Those that take over two seconds, by the time of a processor, the longest first; that of probe.case is told by a clock.
LONGEST='probe.case plan_serve.case test_kernels_attention plan_draft.case test_steady plan_verify.case test_exercise
    plan_trace.case test_simt report.case exercise.case test_steps test_session readme.sh test_steady_groups
    test_normal test_report test_misses test_plot test_kernels_token test_planner_verify simulate.case test_simt_moe
    test_simt_sample test_steady_servers test_bank test_steady_parted test_speculate_loop test_derive test_kernels
    test_planner_bounds test_simulate_queues test_simulate_moves test_planner test_quantity test_cost
    test_steady_flights plan.case test_planner_simulated'
passed=0 failed=0 skipped=0
here=$(dirname "$0")
trap 'exit 130' HUP INT TERM

limited() {
    if command -v timeout >/dev/null 2>&1; then timeout -k 5 "$TIMEOUT_S" "$@"; else "$@"; fi
}

# TAP of one program on stdin, its exit status in rc: prints "passed failed skipped what-is-wrong". cmocka 1.1 writes a
# skipped test as "not ok N # SKIP name", and has one plan for each of its groups.
count() {
    awk -v rc="$1" '
        /^1\.\.[0-9]+/ { planned += substr($1, 4); next }
        /^(not )?ok [0-9]+.*# SKIP/ { skipped++; next }
        /^ok [0-9]+/ { passed++; next }
        /^not ok [0-9]+/ { failed++; next }
        END {
            unseen = planned - passed - failed - skipped
            why = ""
            if (rc == 124 || rc == 137) why = "stopped after its time was up"
            else if (rc > 128) why = "killed by signal " (rc - 128)
            else if (unseen > 0) why = "ended early"
            else if (rc && !failed && !(rc == 77 && !passed)) why = "exit status " rc
            if (rc == 77 && !passed && !failed && !skipped) { skipped = 1; unseen = 0; why = "" }
            if (unseen > 0) { why = why ", " unseen " of " planned " tests did not report"; failed += unseen }
            else if (why != "") failed++
            if (!passed && !failed && !skipped) { failed = 1; why = "reported no test" }
            print passed + 0, failed + 0, skipped + 0, why
        }' "$log"
}

# run.sh --one FOLDER ITEM: one of them, its output and exit status into the folder. Its temporary files are in a folder of its
# own, which goes with it however it ends.
if [ "${1:-}" = --one ]; then
    out=$2/$(printf %s "$3" | tr / _)
    TMPDIR=$2/t$$
    export TMPDIR
    mkdir "$TMPDIR" || exit 1
    trap 'rm -rf "$TMPDIR"' EXIT
    case $3 in
    *.case) limited sh "$here/cli.sh" "$3" ;;
    *.sh) limited sh "$3" ;;
    *) limited "$3" ;;
    esac >"$out" 2>&1 </dev/null
    echo $? >"$out.rc"
    exit 0
fi

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
[ $# -gt 0 ] || set -- build/tests/test_*
for program in "$@"; do
    case $program in
    *.d | *.o) ;;
    *) [ -x "$program" ] && echo "$program" ;;
    esac
done >"$folder/list"
for item in "$here"/cli/*.case "$here"/cli/*.sh; do
    [ -f "$item" ] && echo "$item"
done >>"$folder/list"
# The longest first, so that none of them is left when the others have ended.
awk -F/ -v longest="$LONGEST" '
    BEGIN { n = split(longest, name, " "); for (i = 1; i <= n; i++) rank[name[i]] = i }
    { print ($NF in rank ? rank[$NF] : n + 1) "\t" $0 }' "$folder/list" | sort -s -n -k 1,1 | cut -f 2- >"$folder/order"
xargs -P "$JOBS" -n 1 sh "$here/run.sh" --one "$folder" <"$folder/order"
while read -r item; do
    log=$folder/$(printf %s "$item" | tr / _)
    rc=1
    [ -f "$log.rc" ] && rc=$(cat "$log.rc")
    counts=$(count "$rc")
    why=${counts#* * * }
    set -- $counts
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    [ "$2" -gt 0 ] || continue
    echo "--- $item: $1 passed, $2 failed, $3 skipped${why:+; $why}"
    cat "$log"
done <"$folder/list"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
