"""`ottla completion SHELL`: prints what makes a shell complete `ottla`; the words come from `completing`."""

from __future__ import annotations

import argparse

from ottla.cli.failures import ExitCode

_SCRIPTS = {
    # bash cuts words at colons and equals signs too; ours (topic:NAME, HOST:PORT) are cut at spaces only, and
    # what bash has before its last cut is taken off the answers again.
    "bash": """\
# ottla's completion; load it with: source <(ottla completion bash)
_ottla() {
    local line=${COMP_LINE:0:COMP_POINT} words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    local current=${words[${#words[@]}-1]} cuts=${COMP_WORDBREAKS//[^:=]/} IFS=$'\\n'
    COMPREPLY=($(ottla __complete "${words[@]:1}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    [[ $cuts ]] && COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*[$cuts]}"}"}")
}
complete -o default -F _ottla ottla
""",
    "zsh": """\
#compdef ottla
# ottla's completion; load it with: source <(ottla completion zsh)
_ottla() {
    local -a found unfinished
    found=("${(@f)$(ottla __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    unfinished=(${(M)found:#*=})
    found=(${found:#*=})
    (( $#found + $#unfinished )) || { _files; return }
    (( $#found )) && compadd -a found
    (( $#unfinished )) && compadd -S '' -a unfinished
}
if [[ $funcstack[1] == _ottla ]]; then
    _ottla "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _ottla ottla
fi
""",
    "fish": """\
# ottla's completion; load it with: ottla completion fish | source
function __ottla_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found (ottla __complete $words[2..-1] "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c ottla -f -a '(__ottla_complete)'
""",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=sorted(_SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=_completion)


def _completion(options: argparse.Namespace) -> int:
    print(_SCRIPTS[options.shell], end="")
    return ExitCode.DONE
