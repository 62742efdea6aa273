import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(__dirname, '../..');
const CHECKSUM = /^\+?([0-9a-f]{64}) /gm;
const checksums = (text: string) => [...text.matchAll(CHECKSUM)].map(([, checksum]) => checksum);

it.each(globSync('{apps,libs}/*/src/**/functions/versions.txt', { cwd: ROOT }))(
  '%s names every version that there ever was, because a database of another one is refused as newer',
  (path) => {
    const history = execFileSync('git', ['log', '-p', '--format=', '--', path], { cwd: ROOT, encoding: 'utf8' });
    const ever = checksums(history);
    expect(ever.length).toBeGreaterThan(0);
    expect(checksums(readFileSync(join(ROOT, path), 'utf8'))).toEqual(expect.arrayContaining(ever));
  },
);
