#!/bin/sh
# run.sh [PROGRAM...] -- run test programs and count their test functions. Without arguments: all of build/tests, the
# command-line cases and scripts of tests/cli with them in either case. Every program prints TAP (cmocka when told so, cli.sh
# always). Quiet when all is well; a program with a failure is shown in full. A planned test that did not report, a crash,
# a time-out or a bad exit status without a failed test count as failures.
#   RIDGE      the program under test (build/ridge)
#   TIMEOUT_S  for each program (600)
# The last line is "N passed, N failed, N skipped"; exit status 1 when any failed or none ran.
set -u

RIDGE=${RIDGE:-build/ridge}
TIMEOUT_S=${TIMEOUT_S:-600}
export RIDGE CMOCKA_MESSAGE_OUTPUT=tap
unset CMOCKA_XML_FILE CMOCKA_TEST_ABORT
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM

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

run() { # run NAME COMMAND...
    name=$1
    shift
    limited "$@" >"$log" 2>&1 </dev/null
    counts=$(count $?)
    why=${counts#* * * }
    set -- $counts
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    if [ "$2" -gt 0 ]; then
        echo "--- $name: $1 passed, $2 failed, $3 skipped${why:+; $why}"
        cat "$log"
    fi
}

here=$(dirname "$0")
[ $# -gt 0 ] || set -- build/tests/test_*
for program in "$@"; do
    case $program in
    *.d | *.o) ;;
    *) [ -x "$program" ] && run "$program" "$program" ;;
    esac
done
for cases in "$here"/cli/*.case; do
    [ -f "$cases" ] && run "$cases" sh "$here/cli.sh" "$cases"
done
for script in "$here"/cli/*.sh; do
    [ -f "$script" ] && run "$script" sh "$script"
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
