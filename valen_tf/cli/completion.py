"""`valen-tf completion`: words that a shell offers after Tab, made from the parser."""

import argparse

_BASH = """\
_valen_tf() {{
    local words="{commands}" command="${{COMP_WORDS[1]}}" current="${{COMP_WORDS[COMP_CWORD]}}"
    if [ "$COMP_CWORD" -gt 1 ]; then
        case "$command" in
{cases}
            *) words="" ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}}
complete -o filenames -o nospace -F _valen_tf valen-tf
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def script(parser, shell, keys):
    """What a shell is to evaluate.

    Args:
        parser: The parser of `valen-tf`.
        shell: `"bash"`, `"zsh"` or `"fish"`.
        keys: Keys of a config, offered where values may be overridden.
    """
    words = {name: _words(command, keys) for name, command in _commands(parser).items()}
    if shell == "fish":
        lines = [f'complete -c valen-tf -n __fish_use_subcommand -a "{" ".join(words)}"']
        lines += [
            f'complete -c valen-tf -n "__fish_seen_subcommand_from {name}" -a "{" ".join(offered)}"'
            for name, offered in words.items()
        ]
        return "\n".join(lines) + "\n"
    cases = "\n".join(
        f'            {name}) words="{" ".join(offered)}" ;;' for name, offered in words.items()
    )
    made = _BASH.format(commands=" ".join(words), cases=cases)
    return made if shell == "bash" else _ZSH + made


def _commands(parser):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    return {}


def _words(command, keys):
    offered = [option for action in command._actions for option in action.option_strings]
    offered += list(_commands(command))
    for action in command._actions:
        offered += [str(choice) for choice in action.choices or () if not action.option_strings]
        if action.dest == "words":
            offered += [f"{key}=" for key in keys]
    return list(dict.fromkeys(offered))
