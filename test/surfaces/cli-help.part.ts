import { execFileSync } from 'node:child_process';
import type { runTollgate } from './tollgate-process';

type Tollgate = (args: string[]) => ReturnType<typeof runTollgate>;

/** What the command says of itself. */
export function cliHelpTests(tollgate: Tollgate): void {
  describe('completion', () => {
    it('completes commands and options in bash', async () => {
      const { code, stdout } = await tollgate(['completion', 'bash']);
      expect(code).toBe(0);
      const complete = (...words: string[]) =>
        execFileSync('bash', [
          '-c',
          `${stdout}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tollgate; echo "\${COMPREPLY[*]}"`,
          'x',
          ...words,
        ])
          .toString()
          .trim()
          .split(' ');
      expect(complete('tollgate', 'te')).toEqual(['tenant']);
      expect(complete('tollgate', 'tenant', 's')).toEqual(['show', 'set-plan', 'suspend']);
      expect(complete('tollgate', 'tenant', 'create', 'acme', '--ex')).toEqual(['--external-id']);
      expect(complete('tollgate', 'operator', 'token', 'r')).toEqual(['revoke']);
    });

    it.each(['zsh', 'fish'])('has every group of commands for %s', async (shell) => {
      const { code, stdout } = await tollgate(['completion', shell]);
      expect(code).toBe(0);
      for (const name of ['tenant', 'credit', 'keys', 'usage', 'invoice', 'config']) expect(stdout).toContain(name);
      expect((await tollgate(['completion', 'tcsh'])).code).toBe(2);
    });
  });

  it('the help of every command has examples', async () => {
    const commands: string[] = [];
    const walk = async (path: string[]): Promise<void> => {
      const names = await below(tollgate, path);
      if (names.length === 0) commands.push(path.join(' '));
      for (const name of names) await walk([...path, name]);
    };
    await walk([]);
    for (const known of [
      'tenant suspend',
      'credit refund',
      'budget set',
      'usage export',
      'invoice void',
      'reconcile',
      'dead replay',
    ])
      expect(commands).toContain(known);
    expect((await tollgate(['--help'])).stdout).toContain('Exit codes: 0 done');
  });
}

/** The names of the commands below `path`, from its help. */
async function below(tollgate: Tollgate, path: readonly string[]): Promise<string[]> {
  const { code, stdout } = await tollgate([...path, '--help']);
  expect([path, code]).toEqual([path, 0]);
  expect(stdout).toContain(`$ tollgate ${path.join(' ')}`);
  const [, list = ''] = stdout.split('\nCommands:\n');
  const names = [...list.split('\n\n')[0]!.matchAll(/^  ([a-z-]+)\b/gm)].map(([, name]) => name!);
  if (names.length === 0) expect(stdout).toContain('--json');
  return names.filter((name) => name !== 'help');
}
