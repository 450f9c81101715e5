# redlock.bash - completion for bash: verbs, and the options of each, as the program itself lists them
# (redlock help --options [VERB]; those that take a word end with "=").
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT

# OPTIONS WORD - the next word belongs to this one: to its last option, as in -nw
_redlock_takes_word()
{
    local i
    if [[ $2 == --* ]]; then
        [[ $'\n'$1$'\n' == *$'\n'"$2="$'\n'* ]]
        return
    fi
    for ((i = 1; i < ${#2}; i++)); do
        if [[ $'\n'$1$'\n' == *$'\n'"-${2:i:1}="$'\n'* ]]; then
            ((i + 1 == ${#2}))
            return
        fi
    done
    return 1
}
_redlock()
{
    local program=$1 word=$2 before=$3 verb=${COMP_WORDS[1]} options words part last='' i
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$program" help --options 2>/dev/null)" -- "$word")
        return
    fi
    options=$("$program" help --options "$verb" 2>/dev/null) || return
    if [ "$verb" = run ]; then # NAME, and then a command with options of its own
        words=()
        for part in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do # bash has split them at : = @
            if [[ $part =~ ^[:=@]+$ || ($last =~ ^[:=@]+$ && -n $part) ]]; then
                words[${#words[@]}-1]+=$part
            else
                words+=("$part")
            fi
            last=$part
        done
        for ((i = 2; i + 1 < ${#words[@]}; i++)); do
            if [[ ${words[i]} != -* ]]; then
                [[ ${words[i+1]} == -- ]] && ((i++)) # NAME -- COMMAND
                if ((i + 2 == ${#words[@]})); then
                    mapfile -t COMPREPLY < <(compgen -c -- "$word")
                else
                    mapfile -t COMPREPLY < <(compgen -f -- "$word")
                fi
                return
            fi
            _redlock_takes_word "$options" "${words[i]}" && ((i++))
        done
    fi
    if [[ $word == = ]]; then # --config=, which bash has split
        word=''
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD-2]}
    fi
    if [[ $before == -* ]] && _redlock_takes_word "$options" "$before"; then
        case $before in
            --config | --cacert | --cert | --key) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        esac
        return
    fi
    [[ $word == -* ]] && mapfile -t COMPREPLY < <(compgen -W "${options//=/}" -- "$word")
}
complete -o filenames -F _redlock redlock
