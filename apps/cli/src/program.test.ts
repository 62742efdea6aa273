import type { Command } from 'commander';
import { withoutHelpWord } from './command/help-word';
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

  it.each([
    ['help', '--help'],
    ['help key', 'key --help'],
    ['help key create', 'key create --help'],
    ['key help create', 'key create --help'],
    ['help key create acme', 'key create --help'],
    ['help usage ten_01k…', 'usage --help'],
    ['help usage export', 'usage export --help'],
    ['help foo', 'foo'],
    ['help key foo', 'key foo'],
    ['key help foo', 'key foo'],
    ['help help', '--help'],
    ['tenant create help', 'tenant create help'],
    ['tenant list --json', 'tenant list --json'],
    ['--version', '--version'],
    ['', ''],
  ])('of "tollgate %s" is that of "tollgate %s"', (line, same) => {
    const words = (text: string) => text.split(' ').filter((word) => word !== '');
    expect(
      withoutHelpWord(
        tollgate({}, () => undefined),
        words(line),
      ),
    ).toEqual(words(same));
  });
});
