#!/bin/sh
# cli.sh [FILE...] -- run command-line cases (tests/cli/*.case) against $RIDGE (build/ridge); prints TAP. A case is a block of
# lines up to a blank one, run in an empty directory that is also HOME. The first characters of a line say what it is:
#   # text      name of the case (its last such line before the first command)
#   % command   the case is skipped unless this succeeds, e.g.  % test -d "$RIDGE_SHARED/models"
#   $ command   run by sh; `ridge` is the program, $ROOT the checkout; several run in turn.   > text   a further line of it
#   | text      the next line of its standard output, exactly       ! text   the same of its standard error
#   ~ ere       a line of output in which grep -E finds this        !~ ere   the same of its standard error
#   ...         any number of lines of output                       !...     the same of its standard error
#   ? N         exit status (0 unless given); one that is 77 unasked skips the case
# All output must be accounted for: without lines for it, a stream has to be empty. `joined` is a filter that puts what was
# wrapped (lines that begin with two blanks) on one line again.
set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
ROOT=${here%/*}
RIDGE=${RIDGE:-$ROOT/build/ridge}
case $RIDGE in /*) ;; *) RIDGE=$(pwd)/$RIDGE ;; esac
RIDGE_SHARED=${RIDGE_SHARED:-$ROOT/../shared}
[ -x "$RIDGE" ] || { echo "Bail out! $RIDGE is no program"; exit 1; }
[ $# -gt 0 ] || set -- "$here"/cli/*.case

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/bin" && ln -s "$RIDGE" "$work/bin/ridge" || exit 1
cat >"$work/bin/joined" <<'EOF' && chmod +x "$work/bin/joined" || exit 1
#!/bin/sh
exec awk '/^  [^ ]/ && NR > 1 { sub(/^ */, ""); printf " %s", $0; next } { printf "%s%s", (NR > 1 ? "\n" : ""), $0 } END { if (NR) print "" }'
EOF
PATH=$work/bin:$PATH
export PATH ROOT RIDGE RIDGE_SHARED LC_ALL=C TERM=dumb COLUMNS=80
unset HF_HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME NO_COLOR CLICOLOR_FORCE TZ LANG MAKEFLAGS MAKELEVEL

# Cases of a file into $work/case/N: name, at (line of the file), need, and for each command K: K.cmd K.out K.err K.rc.
# Expected lines keep a letter for their kind: "=" exact, "~" pattern, "." any lines.
split_cases() {
    rm -rf "$work/case"
    mkdir "$work/case"
    awk -v dir="$work/case" -v file="$1" '
        function fail(why) { printf "%s:%d: %s: %s\n", file, NR, why, $0; bad = 1 }
        function put(ext, text) { print text >> (dir "/" n "/" k "." ext) }
        function want(kind, stream, text) {
            if (!k) fail("before any command"); else put(stream, kind text)
        }
        function begin() {
            if (open) return
            open = 1; k = 0; n++
            system("mkdir " dir "/" n)
            print NR > (dir "/" n "/at"); print name > (dir "/" n "/name")
            close(dir "/" n "/at"); close(dir "/" n "/name")
        }
        function end() { open = 0; k = 0; name = "" }
        /^[ \t]*$/ { end(); next }
        /^#/ { if (!open) { name = $0; sub(/^# */, "", name) } next }
        /^% / { begin(); print substr($0, 3) >> (dir "/" n "/need"); next }
        /^\$ / { begin(); if (k) close(dir "/" n "/" k ".cmd"); k++; put("cmd", substr($0, 3)); put("rc", ""); next }
        /^> / || $0 == ">" { if (!k) fail("before any command"); else put("cmd", substr($0, 3)); next }
        /^\| / || $0 == "|" { want("=", "out", substr($0, 3)); next }
        /^! / || $0 == "!" { want("=", "err", substr($0, 3)); next }
        /^~ / { want("~", "out", substr($0, 3)); next }
        /^!~ / { want("~", "err", substr($0, 4)); next }
        $0 == "..." { want(".", "out", ""); next }
        $0 == "!..." { want(".", "err", ""); next }
        /^\? [0-9]+$/ { if (!k) fail("before any command"); else put("rc", $2); next }
        { fail("not a line of a case") }
        END { print n + 0 > (dir "/count"); exit bad }' "$1"
}

# compare WANTED FOUND STREAM: the first difference, nothing when there is none. Lines that each pattern finds come from
# grep; "any lines" takes as few as the rest allows (all ways are tried, back to front).
compare() {
    : >"$work/hits"
    awk '/^~/ { print NR "\t" substr($0, 2) }' "$1" >"$work/patterns"
    while IFS='	' read -r line ere; do
        grep -nE -e "$ere" "$2" | sed "s/^\([0-9]*\):.*/$line \1/" >>"$work/hits"
    done <"$work/patterns"
    awk -v stream="$3" '
        FILENAME == ARGV[1] { hit[$1, $2] = 1; next }
        FILENAME == ARGV[2] { w[++m] = $0; next }
        { f[++n] = $0 }
        function meets(i, j) { return w[i] ~ /^~/ ? (i, j) in hit : w[i] == "=" f[j] }
        END {
            ok[m + 1, n + 1] = 1
            for (i = m; i >= 1; i--)
                for (j = n + 1; j >= 1; j--)
                    if (w[i] == ".") ok[i, j] = ((i + 1, j) in ok && ok[i + 1, j]) || (j <= n && ok[i, j + 1])
                    else ok[i, j] = j <= n && meets(i, j) && ok[i + 1, j + 1]
            if (ok[1, 1]) exit
            # Walk forward as far as the two agree, for the message.
            for (i = j = 1; i <= m && (w[i] == "." || (j <= n && meets(i, j))); )
                if (w[i] != ".") { i++; j++ }
                else if (i == m) { i++; j = n + 1 }
                else if (j > n || meets(i + 1, j)) i++
                else j++
            wanted = i > m ? "the end" : (w[i] ~ /^~/ ? "a line like " : "") substr(w[i], 2)
            print stream ", line " j ": wanted: " wanted
            print stream ", line " j ":  found: " (j > n ? "the end" : f[j])
        }' "$work/hits" "$1" "$2"
}

# run_case DIR: 0 passed, 77 skipped, 1 failed with the reasons in $work/why.
run_case() {
    : >"$work/why"
    rm -rf "$work/home"
    mkdir "$work/home"
    if [ -f "$1/need" ] && ! (cd "$work/home" && HOME=$work/home sh "$1/need") >/dev/null 2>&1 </dev/null; then return 77; fi
    k=1
    while [ -f "$1/$k.cmd" ]; do
        (cd "$work/home" && HOME=$work/home TMPDIR=$work/home sh "$1/$k.cmd") >"$work/out" 2>"$work/err" </dev/null
        rc=$?
        wanted=$(tail -n 1 "$1/$k.rc")
        [ "$rc" = 77 ] && [ -z "$wanted" ] && return 77
        touch "$1/$k.out" "$1/$k.err"
        {
            [ "$rc" = "${wanted:-0}" ] || echo "exit status: wanted ${wanted:-0}, found $rc"
            compare "$1/$k.out" "$work/out" "standard output"
            compare "$1/$k.err" "$work/err" "standard error"
        } >"$work/differs"
        if [ -s "$work/differs" ]; then
            {
                sed 's/^/$ /' "$1/$k.cmd"
                cat "$work/differs"
                sed 's/^/| /' "$work/out"
                sed 's/^/! /' "$work/err"
            } >>"$work/why"
            return 1
        fi
        k=$((k + 1))
    done
    [ "$k" -gt 1 ] && return 0
    echo "no command" >"$work/why"
    return 1
}

t=0 status=0
for file in "$@"; do
    if ! split_cases "$file" >"$work/bad"; then
        t=$((t + 1)) status=1
        echo "not ok $t - $file is not well formed"
        sed 's/^/# /' "$work/bad"
        continue
    fi
    i=1
    while [ "$i" -le "$(cat "$work/case/count")" ]; do
        dir=$work/case/$i
        t=$((t + 1)) i=$((i + 1))
        label="$file:$(cat "$dir/at") $(cat "$dir/name")"
        run_case "$dir"
        case $? in
        0) echo "ok $t - $label" ;;
        77) echo "ok $t # SKIP $label" ;;
        *)
            status=1
            echo "not ok $t - $label"
            sed 's/^/# /' "$work/why"
            ;;
        esac
    done
done
echo "1..$t"
exit $status
