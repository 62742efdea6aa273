import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDirectory } from './make-directory';

describe('creating a directory', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-directory-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('makes those above it, with the same permissions, and may be repeated', () => {
    const path = join(folder, 'a', 'b');
    for (let round = 0; round < 2; round++) makeDirectory(path, 0o700);
    for (const made of [path, join(folder, 'a')]) expect(statSync(made).mode & 0o777).toBe(0o700);
  });

  it('fails where a file is, and where nothing can be made', () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    expect(() => makeDirectory(file)).toThrow('EEXIST');
    expect(() => makeDirectory(join(file, 'a'))).toThrow('ENOTDIR');
    // On Linux nobody can, and elsewhere only root.
    expect(() => makeDirectory('/proc/tollgate/a')).toThrow();
  });
});
