import { Argument, type Command } from 'commander';
import { leaf } from './leaf';
import { Output } from './output';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** What may follow the words of a command. */
interface Node {
  /** The words of the command, such as "tenant create"; empty: the program. */
  path: string;
  commands: string[];
  options: string[];
}

/** zsh expands aliases before it completes, so an alias there gets no completion. */
const FOR_THIS_SHELL = `For the running shell alone, where "tollgate" is a command or a function (in zsh no alias):
  bash  source <(tollgate completion bash)
  zsh   source <(tollgate completion zsh)
  fish  tollgate completion fish | source
`;

/** Scripts that complete commands and options. They are made from the commands themselves, and ask nothing. */
export function addCompletionCommand(program: Command): void {
  leaf(
    program,
    'completion',
    'print a script that completes commands and options in a shell',
    'completion bash > ~/.local/share/bash-completion/completions/tollgate',
    'completion zsh > ~/.zfunc/_tollgate     # a folder of $fpath',
    'completion fish > ~/.config/fish/completions/tollgate.fish',
  )
    .addHelpText('after', FOR_THIS_SHELL)
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action((shell: Shell, options: object) => {
      const script = SCRIPTS[shell](nodesOf(program, ''));
      new Output('json' in options).answer({ shell, script }, script.trimEnd());
    });
}

function nodesOf(command: Command, path: string): Node[] {
  const { commands } = command;
  const below = (name: string) => (path === '' ? name : `${path} ${name}`);
  const node = {
    path,
    commands: commands.map((one) => one.name()),
    options: [...command.options.flatMap(({ long }) => long ?? []), '--help'],
  };
  return [node, ...commands.flatMap((one) => nodesOf(one, below(one.name())))];
}

/** Finds the command in the words before the cursor, then lists what may follow it. */
function bash(nodes: Node[]): string {
  const paths = nodes.filter(({ path }) => path !== '').map(({ path }) => `"${path}"`);
  const cases = nodes.map(
    ({ path, commands, options }) => `    "${path}") words="${[...commands, ...options].join(' ')}" ;;`,
  );
  return `_tollgate() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" path="" words="" next i
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${path:+$path }\${COMP_WORDS[i]}"
    case "$next" in
    ${paths.join(' | ')}) path="$next" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _tollgate tollgate
`;
}

/**
 * Works as a file of `$fpath`, where the first completion runs all of it, and in `source`. Without completion it starts
 * it first.
 */
function zsh(nodes: Node[]): string {
  const paths = nodes.filter(({ path }) => path !== '').map(({ path }) => `"${path}"`);
  const cases = nodes.map(
    ({ path, commands, options }) => `    "${path}") names=(${[...commands, ...options].join(' ')}) ;;`,
  );
  return `#compdef tollgate
_tollgate() {
  local at="" next="" i
  local -a names
  for ((i = 2; i < CURRENT; i++)); do
    next="\${at:+$at }\${words[i]}"
    case "$next" in
    ${paths.join(' | ')}) at="$next" ;;
    esac
  done
  case "$at" in
${cases.join('\n')}
  esac
  compadd -a names || _files
}
if [[ "\${funcstack[1]}" == "_tollgate" ]]; then
  _tollgate "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
  compdef _tollgate tollgate
fi
`;
}

function fish(nodes: Node[]): string {
  const paths = nodes.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`);
  const lines = nodes.flatMap(({ path, commands, options }) => {
    const at = `complete -c tollgate -n 'test (__tollgate_path) = "${path}"'`;
    const names = commands.length > 0 ? [`${at} -f -a '${commands.join(' ')}'`] : [];
    return [...names, ...options.map((option) => `${at} -l ${option.slice(2)}`)];
  });
  return `function __tollgate_path
  set -l path
  for word in (commandline -opc)[2..-1]
    set -l next (string trim "$path $word")
    if contains -- "$next" ${paths.join(' ')}
      set path "$next"
    end
  end
  echo "$path"
end
${lines.join('\n')}
`;
}

const SCRIPTS: Record<Shell, (nodes: Node[]) => string> = { bash, zsh, fish };
