#!/bin/sh
# lint.sh -- the house rules that a script can see; `make lint` runs it. Every finding is a line "file:line: what"; the exit
# status is 1 when there is any. A number that is no unit factor is allowed on a line with the comment /* not a unit */.
set -u

MAKE=${MAKE:-make}
BUILD=${BUILD:-build/lint}
PARALLEL=${PARALLEL:-} # "-jN", or nothing when make runs this in parallel already
# Rooms of calc/ in their order: each includes itself and those before it. Other folders: what they may include.
ROOMS='base sym model cost time fit serve learn cli'
# The workers, probe/worker, are programs of their own: they alone know the kernels, and nothing else knows them.
FOLDERS='probe: probe calc/base calc/model calc/cost
probe/worker: probe/worker probe kernels calc/base
kernels: kernels
tools: tools calc/base calc/sym
tests: tests probe probe/worker kernels calc'

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

report() { # report TITLE, findings on stdin
    found=$(cat)
    [ -n "$found" ] || return 0
    printf '%s:\n%s\n' "$1" "$found"
    touch "$work/findings" # report runs at the end of a pipe, where a variable would be lost
}

folders=
for d in calc probe kernels tests tools; do [ -d "$d" ] && folders="$folders $d"; done
# shellcheck disable=SC2086
sources=$(find $folders -type f \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) | sort)
scripts=$(find . -path ./build -prune -o -type f \( -name '*.sh' -o -name '*.bash' -o -path './.ci/run' \) -print)

# file:line:code with comments, strings and character constants taken out, #include lines kept whole.
# shellcheck disable=SC2086
awk '
    FNR == 1 { comment = 0 }
    {
        s = $0; out = ""; string = ""
        if (s ~ /^[ \t]*#[ \t]*include/ && !comment) { print FILENAME ":" FNR ":" s; next }
        allowed = index(s, "/* not a unit */") ? " NOT_A_UNIT" : ""
        for (i = 1; i <= length(s); i++) {
            c = substr(s, i, 1); two = substr(s, i, 2)
            if (comment) { if (two == "*/") { comment = 0; i++ } }
            else if (string != "") { if (c == "\\") i++; else if (c == string) { string = ""; out = out c } }
            else if (two == "/*") { comment = 1; i++; out = out " " }
            else if (two == "//") break
            else if (c == "\"" || c == "\047") { string = c; out = out c }
            else out = out c
        }
        print FILENAME ":" FNR ":" out allowed
    }' $sources >"$work/code"

command -v clang-format >/dev/null 2>&1 || echo 'clang-format is missing: make deps-dev' | report 'tools'
command -v clang >/dev/null 2>&1 || echo 'clang is missing: make deps-dev' | report 'tools'

echo 'lint: format'
# shellcheck disable=SC2086
clang-format --dry-run -Werror $(printf '%s\n' $sources | grep '\.[ch]$') 2>&1 |
    sed -n 's/ error: code should be clang-formatted.*/ not formatted/p' | sort -u -t: -k1,1 | report 'make format would change'

echo 'lint: rules'
awk -F: -v rooms="$ROOMS" -v folders="$FOLDERS" '
    BEGIN {
        n = split(rooms, room, " ")
        for (i = 1; i <= n; i++)
            for (j = 1; j <= i; j++) may["calc/" room[i], "calc/" room[j]] = 1
        may["calc/cli", "probe"] = 1
        n = split(folders, line, "\n")
        for (i = 1; i <= n; i++) {
            m = split(line[i], word, /:? /)
            for (j = 2; j <= m; j++) may[word[1], word[j]] = 1
        }
    }
    function place(path, part) {
        split(path, part, "/")
        if (part[1] == "calc" || (part[1] == "probe" && part[2] == "worker")) return part[1] "/" part[2]
        return part[1]
    }
    $3 ~ /^[ \t]*#[ \t]*include[ \t]*"/ {
        path = $3; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
        from = place($1); to = place(path); split(to, top, "/")
        if ((path ~ /\.\./) || !index(path, "/")) print $1 ":" $2 ": \"" path "\" is not written from the root of the checkout"
        else if (!((from, to) in may) && (to == "probe/worker" || !((from, top[1]) in may))) print $1 ":" $2 ": " from " includes " path
    }' "$work/code" | report 'layering'

grep -E '^calc/' "$work/code" | grep -vE '^calc/base/units[^/]*:|NOT_A_UNIT$' |
    grep -E '^[^:]+:[0-9]+:(.*[^[:alnum:]_.])?(1e9|1e12|1024|1073741824)($|[^[:alnum:]_.])' |
    report 'unit factors outside calc/base/units'
grep -E '(^|[^[:alnum:]_])(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atoll|atof|gets|alloca) *\(' "$work/code" |
    report 'forbidden functions'
grep -E '^(calc|probe)/' "$work/code" | grep -v '^calc/cli/main\.c:' |
    grep -E '(^|[^[:alnum:]_.>])(exit|quick_exit|abort) *\(' | report 'only main exits'
grep -E '^(calc|probe)/' "$work/code" | grep -E '(^|[[:space:]])typedef[[:space:]]+(struct|union)' | report "typedef'd structs"

# shellcheck disable=SC2086
grep -nE '[[:blank:]]+$' $sources $scripts Makefile $(find plots configs -type f 2>/dev/null) |
    cut -c1-120 | report 'trailing blanks'
# shellcheck disable=SC2086
grep -n '	' $sources | cut -c1-120 | report 'tabs'
# shellcheck disable=SC2086
grep -nE '(TODO|FIXME)([^[:alnum:]_]|$)' $sources $scripts Makefile | grep -v '^tools/lint\.sh:\|^\./tools/lint\.sh:' | report 'unfinished'
for f in $scripts; do
    case $(head -n 1 "$f") in *bash*) bash -n "$f" 2>&1 ;; *) sh -n "$f" 2>&1 ;; esac
done | report 'shell syntax'

# gcc needs its optimiser for some warnings, and its objects are looked into below; clang's are all from reading the source.
make_quietly() { # make_quietly COMPILER ARGUMENT...: what it says beyond its steps
    command -v "$1" >/dev/null 2>&1 || return 0
    echo "lint: warnings of $1"
    cc=$1 && shift
    $MAKE --no-print-directory -k $PARALLEL STRICT=1 SAN= CC="$cc" BUILD="$BUILD/$cc" "$@" >"$work/log" 2>&1 ||
        grep -vE '^  (cc|ar|link|embed|hostcc|simt) ' "$work/log" | report "$cc"
}
make_quietly gcc all tests
make_quietly clang CFLAGS=-fsyntax-only warnings

# Writable data at file scope; tables of pointers are .data.rel.ro, which is read-only once loaded.
if [ -f "$BUILD/gcc/libridge.a" ]; then
    objdump -t "$BUILD/gcc/libridge.a" "$BUILD"/gcc/obj/kernels/*.o "$BUILD"/gcc/obj/probe/worker/*.o | awk '
        /file format/ { file = $1 }
        / O (\.data|\.bss|\*COM\*|\.tdata|\.tbss)/ && !/\.data\.rel\.ro/ { print file " " $NF }' | report 'mutable state at file scope'
fi

[ -e "$work/findings" ] && exit 1
echo 'lint: clean'
