import type { Command } from 'commander';
import { tollgate } from '../../apps/cli/src/program';
import { documents, textOf } from './document';

const BLOCK = /^ *```\w*\n(.*?)^ *```$/gms;
/** A call of the command, at the beginning of code or after what a shell allows there. */
const CALL = /(?:^|[(;&|] ?|npx |[A-Z_]+=\S+ )tollgate ([a-z-][^|&;()>]*)/g;

/** The words after `tollgate` of each call in the code of a document. */
function calls(text: string): string[][] {
  const lines = [...text.matchAll(BLOCK)].flatMap(([, code]) =>
    code!
      .replace(/\\\n\s*/g, ' ')
      .split('\n')
      .map((line) => line.replace(/(^|\s)#.*/, '').trim()),
  );
  const inline = [...text.replace(BLOCK, '').matchAll(/`([^`]+)`/g)].map(([, code]) => code!.replace(/\s+/g, ' '));
  return [...lines, ...inline].flatMap((code) =>
    [...code.matchAll(CALL)].map(([, words]) => words!.replace(/[[\]]/g, '').trim().split(' ')),
  );
}

/** What is wrong with a call: a command or an option that does not exist. */
function wrong(program: Command, words: readonly string[]): string[] {
  let command = program;
  const rest = [...words];
  for (;;) {
    const below = command.commands.find((one) => one.name() === rest[0]);
    if (!below) break;
    command = below;
    rest.shift();
  }
  const isGroup = command.commands.length > 0 && command.registeredArguments.length === 0;
  const options = ['--help', '--version', ...command.options.map(({ long }) => long)];
  const unknown = rest.filter((word) => word.startsWith('--') && !options.includes(word.split('=')[0]));
  return [...(isGroup && /^[a-z]/.test(rest[0] ?? '') ? [rest[0]!] : []), ...unknown];
}

const program = tollgate({}, () => undefined);

it('every command and option of tollgate that a document shows exists', () => {
  const all = documents().flatMap((path) => calls(textOf(path)).map((words) => ({ path, words })));
  expect(all.length).toBeGreaterThan(100);
  expect(
    all.flatMap(({ path, words }) => wrong(program, words).map((word) => `${path}: ${word} in ${words.join(' ')}`)),
  ).toEqual([]);
});

it('the check finds a wrong command and a wrong option, in a block and in the text', () => {
  const text = '`npx tollgate tenant\nmake`\n\n```sh\nnpx tollgate key list \\\n  --all # --none\n```\n';
  expect(calls(text).flatMap((words) => wrong(program, words))).toEqual(['--all', 'make']);
});
