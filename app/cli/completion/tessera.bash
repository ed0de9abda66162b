# Completion for bash: commands from `tessera --help`, options from each command's help.
# shellcheck shell=bash
_tessera() {
    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]-}
    local current=${COMP_WORDS[COMP_CWORD]} words
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words=$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z]\{1,\}\)  .*/\1/p')
    elif [[ $current == -* ]]; then
        # those of wsclean have one dash
        words=$("$program" "$command" --help-all 2>/dev/null |
            sed -n -e 's/^ *\(-[a-z], \)\{0,1\}\(--[a-z][a-z-]*\).*/\2/p' \
                -e 's/^  \(-[a-z][a-z-]*\)\( .*\)\{0,1\}$/\1/p' | sort -u)
    else
        compopt -o default
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -F _tessera tessera
