import type { Command } from 'commander';

/** A command that does something, with `--json` and examples. */
export function leaf(parent: Command, nameAndArguments: string, description: string, ...lines: string[]): Command {
  return parent
    .command(nameAndArguments)
    .description(description)
    .option('--json', 'print exactly one JSON document')
    .addHelpText('after', examples(...lines));
}

/** For a command whose output has its own format. */
export function describeJson(command: Command, description: string): Command {
  command.options.find(({ long }) => long === '--json')!.description = description;
  return command;
}

/** A command that only holds others. */
export function group(parent: Command, name: string, description: string, ...lines: string[]): Command {
  return parent
    .command(name)
    .description(description)
    .addHelpText('after', examples(...lines));
}

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ tollgate ${line}`).join('\n')}\n`;
}
