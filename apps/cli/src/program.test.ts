import type { Command } from 'commander';
import { tollgate } from './program';

/** What `tollgate <path> --help` prints, by path, of all commands and groups. */
function allHelp(command: Command, path: readonly string[] = []): Map<string, string> {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part) });
  command.outputHelp();
  const found = new Map([[path.join(' '), text]]);
  for (const below of command.commands)
    for (const [name, help] of allHelp(below, [...path, below.name()])) found.set(name, help);
  return found;
}

describe('the help', () => {
  const help = allHelp(tollgate({}, () => undefined));
  const isGroup = (name: string) => help.get(name)!.includes('\nCommands:\n');

  it('is that of all commands', () => {
    expect([...help.keys()]).toEqual(
      expect.arrayContaining([
        'tenant suspend',
        'credit refund',
        'budget set',
        'usage export',
        'invoice void',
        'reconcile',
        'dead replay',
      ]),
    );
  });

  it.each([...help.keys()])('of "%s" has examples, and the option of a command for JSON', (name) => {
    expect(help.get(name)).toContain(`$ tollgate ${name}`);
    if (!isGroup(name)) expect(help.get(name)).toContain('--json');
  });
});
