import fs, { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { operatorSecret } from './settings';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'tollgate-data-'))));
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(directory, { recursive: true });
});

const full = () => Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });

it.each(['write', 'fsync'] as const)('a secret that a full disk does not take leaves no file: %s', (call) => {
  const write = fs.writeFileSync;
  if (call === 'fsync')
    jest.spyOn(fs, 'fsyncSync').mockImplementation(() => {
      throw full();
    });
  else
    jest.spyOn(fs, 'writeFileSync').mockImplementation((file) => {
      write(file, '');
      throw full();
    });
  const settings = { TOLLGATE_DATA_DIR: directory };
  expect(() => operatorSecret(settings)).toThrow('cannot be written (the disk is full)');
  expect(readdirSync(directory)).toEqual([]);
  jest.restoreAllMocks();
  const secret = operatorSecret(settings);
  expect(secret).toMatch(/^[\w-]{43}$/);
  expect(operatorSecret(settings)).toBe(secret);
});

describe('two processes that create a secret at the same time', () => {
  const secret = () => operatorSecret({ TOLLGATE_DATA_DIR: directory });

  it('use the one that was made first', () => {
    const made = secret();
    jest.spyOn(fs, 'existsSync').mockReturnValueOnce(true).mockReturnValueOnce(false);
    expect(secret()).toBe(made);
  });

  it('find no file that is not complete', () => {
    const found: string[][] = [];
    const sync = fs.fsyncSync;
    jest.spyOn(fs, 'fsyncSync').mockImplementation((file) => {
      found.push(readdirSync(directory));
      sync(file);
    });
    secret();
    expect(found).toHaveLength(1);
    expect(found[0]).not.toContain('operator.secret');
    expect(readdirSync(directory)).toEqual(['operator.secret']);
  });
});
