"""`ottla completion SHELL`: prints what makes a shell complete `ottla`; the words come from `completing`."""

from __future__ import annotations

import argparse

from ottla.cli.failures import ExitCode

_SCRIPTS = {
    "bash": """\
# ottla's completion; load it with: source <(ottla completion bash)
_ottla() {
    local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    local IFS=$'\\n'
    COMPREPLY=($(ottla __complete "${words[@]}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _ottla ottla
""",
    "zsh": """\
#compdef ottla
# ottla's completion; load it with: source <(ottla completion zsh)
_ottla() {
    local -a found
    found=("${(@f)$(ottla __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    [[ -n "${found[1]}" ]] && compadd -- "${found[@]}" || _files
}
compdef _ottla ottla
""",
    "fish": """\
# ottla's completion; load it with: ottla completion fish | source
function __ottla_complete
    set -l words (commandline -opc) (commandline -ct)
    ottla __complete $words[2..-1] 2>/dev/null
end
complete -c ottla -a '(__ottla_complete)'
""",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=sorted(_SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=_completion)


def _completion(options: argparse.Namespace) -> int:
    print(_SCRIPTS[options.shell], end="")
    return ExitCode.DONE
