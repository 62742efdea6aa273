import type { Command } from 'commander';

/**
 * `help key create` and `key help create` as `key create --help`. Commander's own `help` shows the usage of the group
 * for a name that it does not know, and for a command below a group. Without `--help`, an unknown name is the error of
 * `tollgate <name>`. Any other command line is returned as it is.
 */
export function withoutHelpWord(program: Command, args: readonly string[]): readonly string[] {
  const names: string[] = [];
  let group = program;
  let isHelp = false;
  for (const word of args) {
    if (word === 'help') {
      isHelp = true;
      continue;
    }
    const next = group.commands.find((command) => command.name() === word);
    // An option, or an argument of a command that has others below it.
    if (!next && (word.startsWith('-') || group.registeredArguments.length > 0)) break;
    names.push(word);
    if (!next) return isHelp ? names : args;
    if (next.commands.length === 0) break;
    group = next;
  }
  return isHelp ? [...names, '--help'] : args;
}
