#!/bin/sh
# latex.sh -- every page of `ridge explain --latex`, of the textbook, the lecture and models with and without a device,
# compiled by pdflatex; prints TAP. A page that does not compile, or has a line more than 20pt too wide, is a failure.
# The bodies of a set of pages go through one run. Without pdflatex all is skipped.
#   RIDGE   the program (build/ridge)
set -u

RIDGE=${RIDGE:-build/ridge}
case $RIDGE in /*) ;; *) RIDGE=$(pwd)/$RIDGE ;; esac
[ -x "$RIDGE" ] || { echo "Bail out! $RIDGE is no program"; exit 1; }
if ! command -v pdflatex >/dev/null 2>&1; then
    echo "ok 1 # SKIP no pdflatex here"
    echo "1..1"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1
unset TEXINPUTS
WIDE_PT=20
t=0 status=0

report() { # report NAME: from rc and the log of set.tex
    t=$((t + 1))
    awk -v wide=$WIDE_PT '
        /^PAGE / { page = substr($0, 6) }
        /^!/ { print page ": " $0 }
        match($0, /^Overfull \\hbox \([0-9.]*pt/) {
            if (substr($0, RSTART + 16, RLENGTH - 18) + 0 > wide) print page ": " $0
        }' set.log >why
    if [ "$rc" = 0 ] && [ ! -s why ]; then
        echo "ok $t - $1"
    else
        status=1
        echo "not ok $t - $1"
        sed 's/^/# /' why
    fi
}

compile() {
    pdflatex -interaction=nonstopmode -halt-on-error set.tex >/dev/null 2>&1 </dev/null
    rc=$?
}

topics=$("$RIDGE" explain | sed -n 's/^  \([a-z][a-z_]*\)  *.*/\1/p')
names=$(for name in $topics capacity_bytes; do
    "$RIDGE" explain "$name" -m llama-2-13b -g h100-sxm >/dev/null 2>&1 && echo "$name"
    "$RIDGE" explain "$name" >/dev/null 2>&1 && echo "$name"
    :
done | sort -u)

while read -r options; do
    : >bodies
    pages=0
    for name in $names; do
        # a model has not every topic
        # shellcheck disable=SC2086
        "$RIDGE" explain "$name" $options --latex -o page.tex 2>/dev/null || continue
        pages=$((pages + 1))
        printf '\\typeout{PAGE %s}\n' "$name" | sed 's/_/\\string_/g' >>bodies
        sed -e '1,/^\\begin{document}/d' -e '/^\\end{document}/d' page.tex >>bodies
        printf '\\clearpage\n' >>bodies
    done
    if [ "$pages" -lt 12 ]; then
        rc=1
        : >set.log
        report "explain $options: only $pages pages"
        continue
    fi
    { sed '/^\\begin{document}/q' page.tex; cat bodies; printf '\\end{document}\n'; } >set.tex
    compile
    report "explain $options: $pages pages"
done <<'END'

--course
--tp 2
-m llama-2-13b -g h100-sxm
-m llama-2-13b -g h100-sxm --course -b 64
-m deepseek-v3 -g h200-sxm:8 -b 64 --layer 2
-m gemma-3-27b --phase decode --layer 1
-m gpt-oss-120b -g h100-sxm:2 --fidelity bound --layer 1
END

# A page as it is written, and a model whose name means something to TeX, to a shell, and to nobody.
"$RIDGE" explain decode_step -m mixtral-8x7b -g a100-80g:2 --latex -o set.tex
compile
report "a whole document"
name='a\input{x}%$1_2&#~^{}"`<|>--é模'$(printf '\342\200\256\377')
config=$(printf '%s' "$name")
mkdir "$config" 2>/dev/null || { config='a\input{x}%$1_2&#~^{}"`<|>--é模'; mkdir "$config"; }
cat >"$config/config.json" <<'END'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1376,
 "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 32003,
 "torch_dtype": "bfloat16", "tie_word_embeddings": false}
END
"$RIDGE" explain mlp -m "./$config" --latex -o set.tex
compile
report "a hostile name"
if command -v pdftotext >/dev/null 2>&1; then
    t=$((t + 1))
    if pdftotext set.pdf - | grep -qF 'a\input{x}%$1'; then
        echo "ok $t - its characters stand for themselves"
    else
        status=1
        echo "not ok $t - its characters stand for themselves"
        pdftotext set.pdf - | sed -n '1,4s/^/# /p'
    fi
fi

echo "1..$t"
exit $status
