import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

// The lines of README.md and of `completion --help` in real shells. bash is in cli-help.part.ts.
const TIMEOUT_MS = 60_000;
const root = join(__dirname, '../../..');
const home = mkdtempSync(join(tmpdir(), 'completion-'));
mkdirSync(join(home, 'bin'));
symlinkSync(join(root, 'tools/tollgate.mjs'), join(home, 'bin/tollgate'));
afterAll(() => rmSync(home, { recursive: true }));

const PATH = [join(home, 'bin'), join(process.execPath, '..'), process.env['PATH']].join(delimiter);
const run = (shell: string, ...args: string[]) =>
  execFileSync(shell, args, { env: { HOME: home, PATH, TERM: 'xterm' }, encoding: 'utf8', timeout: TIMEOUT_MS })
    .trim()
    .split('\n');
/** What the help says for the running shell. */
const lineFor = (shell: string): string =>
  new RegExp(`^  ${shell} +(.*)$`, 'm').exec(run('tollgate', 'completion', '--help').join('\n'))?.[1] ?? '';
const TYPED = ['tollgate te', 'tollgate tenant cr', 'tollgate tenant create acme --ex'];
const COMPLETED = ['tollgate tenant', 'tollgate tenant create', 'tollgate tenant create acme --external-id'];

/** Types each line into an interactive zsh, presses Tab, and prints what the line is then. */
const typedInto = (setUp: string): string => `
  zmodload zsh/zpty
  zpty shell 'zsh -f -i'
  zpty -w shell ${quoted(
    `bindkey -e; ${setUp}; show() { print -r -- "LINE=[\${BUFFER% }]"; BUFFER=; zle .accept-line }; zle -N show; ` +
      `bindkey '^X' show; print RE''ADY`,
  )}
  zpty -r shell out '*READY*'
  for line in ${TYPED.map(quoted).join(' ')}; do
    zpty -w -n shell "$line"$'\\t'$'\\x18'
    zpty -r shell out '*LINE=\\[*\\]*'
    print -r -- "\${\${out##*LINE=\\[}%%\\]*}"
  done
  zpty -d shell`;
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

describe('completion in zsh', () => {
  it('works after the line of the help', () => {
    const line = lineFor('zsh');
    expect(line).toBe('source <(tollgate completion zsh)');
    expect(run('zsh', '-f', '-c', typedInto(line))).toEqual(COMPLETED);
  });

  it('works from a file of $fpath, from the first Tab on', () => {
    const folder = join(home, 'zfunc');
    mkdirSync(folder);
    writeFileSync(join(folder, '_tollgate'), run('tollgate', 'completion', 'zsh').join('\n'));
    const setUp = `fpath=(${folder} $fpath); autoload -Uz compinit; compinit -u`;
    expect(run('zsh', '-f', '-c', typedInto(setUp))).toEqual(COMPLETED);
  });
});

it('completion in fish works after the line of the help', () => {
  const line = lineFor('fish');
  expect(line).toBe('tollgate completion fish | source');
  const last = (typed: string) => run('fish', '--no-config', '-c', `${line}; complete -C ${quoted(typed)}`);
  expect(TYPED.map((typed) => last(typed)).map(([word]) => word)).toEqual(['tenant', 'create', '--external-id']);
});

it('the lines of README.md are those of the help', () => {
  const text = readFileSync(join(root, 'README.md'), 'utf8');
  for (const line of ['bash', 'zsh', 'fish'].map(lineFor)) expect(text).toContain(line);
});
