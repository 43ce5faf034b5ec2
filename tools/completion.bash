# bash completion of ridge: commands, their options, models, hardware and exercises, all asked of the program itself.
_ridge()
{
    local line word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words=$(ridge help 2>/dev/null | sed -n 's/^  ridge \([a-z]\{3,\}\)  .*/\1/p')
    else
        case $before in
        -m | --model) words=$(ridge list models --format csv 2>/dev/null | sed '1d; s/,.*//') ;;
        -g | --gpu) words=$(ridge list hardware --format csv 2>/dev/null | sed '1d; s/,.*//') ;;
        --policy) words="chunked fcfs static" ;;
        --route) words="round-robin least-loaded prefix" ;;
        --rows) words="summary requests steps" ;;
        --memory) words="paged contiguous contiguous=pow2 contiguous=exact" ;;
        --dcp-comm-backend) words='ag_rs a2a' ;;
        -f | --format) words='text md csv json jsonl' ;;
        exercise) words='list show answer grade' ;;
        show | answer) words=$(ridge exercise list --format csv 2>/dev/null | sed '1d; s/^[0-9]*,//; s/,.*//') ;;
        *) words=$(ridge help "${COMP_WORDS[1]}" 2>/dev/null | grep -oE -e '(^|[ ,[])--[a-z][a-z-]*' | tr -d ' ,[') ;;
        esac
    fi
    # Names of files stay possible (-o default) where nothing matches.
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -W "$words" -- "$word")
}
complete -o default -F _ridge ridge
