import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileProblem } from './file-problem';

/** Why this file cannot be read. */
function problemOf(path: string): string {
  try {
    readFileSync(path);
  } catch (error) {
    return fileProblem(error);
  }
  throw new Error(`${path} can be read`);
}

it('says in words why a file cannot be read', () => {
  expect(problemOf(join(tmpdir(), 'tollgate-no-such-file'))).toBe('there is no such file or directory');
  expect(problemOf(tmpdir())).toBe('it is a directory');
});

it.each([
  [
    'an unusual error by its code',
    Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' }),
    'EMFILE',
  ],
  ['an error without a code by its message', new Error('too large'), 'too large'],
])('names %s', (_, error, named) => expect(fileProblem(error)).toBe(named));
