import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import type { runTollgate } from '../tollgate-process';

const MAIN = resolve(__dirname, '../../../apps/cli/dist/main.js');

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

  it('loads the libraries of services and servers only for the commands that need them', () => {
    const script = `
      require(${JSON.stringify(MAIN)});
      const libraries = /node_modules.(kafkajs|ioredis|pg|class-validator|prom-client|pino|@nestjs)\\b/;
      console.log(Object.keys(require.cache).filter((path) => libraries.test(path)));`;
    expect(execFileSync('node', ['-e', script, 'tollgate', '--version']).toString()).toMatch(/^\d+\.\d+\.\d+\n\[\]\n$/);
  });

  it('its help names the groups of commands, and the exit codes', async () => {
    const { code, stdout } = await tollgate(['--help']);
    expect(code).toBe(0);
    for (const text of ['\n  tenant', '\n  credit', 'Exit codes: 0 done']) expect(stdout).toContain(text);
  });

  it('its help says which options a command requires', async () => {
    const { stdout } = await tollgate(['credit', 'adjust', '--help']);
    expect(stdout.match(/--\w+(?=[^-]*\(required\))/g)).toEqual(['--ref', '--reason']);
  });

  it('says that a command does not exist when its help is wanted, and ends with exit code 2', async () => {
    for (const args of [
      ['help', 'foo'],
      ['help', 'tenant', 'foo'],
    ]) {
      const { code, stdout, stderr } = await tollgate(args);
      expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(/^tollgate: unknown command 'foo'\n/)]);
    }
    const known = await tollgate(['help', 'tenant', 'create']);
    expect([known.code, known.stdout]).toEqual([0, expect.stringContaining('Usage: tollgate tenant create ')]);
  });
}
