import { eventually } from '@tollgate/testing';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, FileConfigSource, readConfigFile } from '../index';

const directory = fs.mkdtempSync(join(tmpdir(), 'config-aliases-'));
const file = join(directory, 'tollgate.yaml');
afterAll(() => fs.rmSync(directory, { recursive: true }));

const GOOD = `
models:
  - id: m
    kind: chat
    contextTokens: 100
    maxOutputTokens: 50
    price: { input: "0.15", output: "0.60" }
    backends: [{ url: "simulator:" }]
plans:
  - id: p
    limits: &limits { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 }
    profiles: [{ id: d, limits: *limits }]
`;
const RECURSIVE = GOOD.replace('kind: chat', 'kind: chat\n    aliases: &names [*names]');

function read(text: string) {
  fs.writeFileSync(file, text);
  return readConfigFile(file, {});
}

function problemsOf(text: string) {
  try {
    read(text);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error('accepted');
}

const problem = (alias: string, line: number) => [
  { path: '', message: `the alias *${alias} is inside the value that it stands for`, line },
];

describe('an alias of tollgate.yaml', () => {
  it('stands for a value of the file', () => {
    expect(read(GOOD).plans[0]!.profiles[0]!.limits.concurrency).toBe(1);
    // The second anchor of a name replaces the first one.
    const again = GOOD.replace('kind: chat', 'kind: chat\n    aliases: &x [&x one, two]').replace('id: p', 'id: *x');
    expect(read(again).plans[0]!.id).toBe('one');
  });

  it.each([
    ['a list in itself', RECURSIVE, 'names', 5],
    ['a mapping in itself', GOOD.replace('- id: m', '- &m\n    id: m\n    own: { a: [*m] }'), 'm', 5],
    ['a merge with itself', `${GOOD}more: &more\n  <<: *more\n`, 'more', 14],
    ['the whole file', `&all\n${GOOD.slice(1)}more: *all\n`, 'all', 13],
    ['a key of a mapping', `${GOOD}? &key [*key]\n: 1\n`, 'key', 13],
  ])('that names %s is one problem with its line', (_, text, alias, line) => {
    expect(problemsOf(text)).toEqual(problem(alias, line));
  });

  it('that names itself leaves the old configuration in force, with one line', async () => {
    const logged: string[] = [];
    const write = jest.spyOn(fs, 'writeSync').mockImplementation((_: number, text: unknown) => {
      logged.push(String(text));
      return Buffer.byteLength(String(text));
    });
    fs.writeFileSync(file, GOOD);
    const source = new FileConfigSource(file, {}, 1);
    try {
      const before = source.current;
      fs.writeFileSync(file, RECURSIVE);
      await eventually(() => expect(logged).not.toEqual([]));
      await source.refresh();
      expect(source.current).toBe(before);
      expect(logged).toHaveLength(1);
      expect(logged[0]).toContain(`the old configuration stays in force: ${file}:5: the alias *names is inside`);
    } finally {
      source.close();
      write.mockRestore();
    }
  });
});
