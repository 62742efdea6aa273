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
