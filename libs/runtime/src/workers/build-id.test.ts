import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildId, requireSameBuild } from './build-id';

it('a worker whose code was changed since the first process started is refused', () => {
  const root = mkdtempSync(join(tmpdir(), 'build-'));
  try {
    const write = (path: string, text: string) => {
      mkdirSync(join(root, path, '..'), { recursive: true });
      writeFileSync(join(root, path), text);
    };
    write('apps/a/dist/main.js', 'one');
    write('apps/b/src/main.ts', 'source');
    write('libs/c/dist/deep/index.js', 'two');
    const first = buildId(root);
    // Built again from the same sources.
    write('apps/a/dist/main.js', 'one');
    write('apps/a/dist/main.js.map', 'map');
    write('apps/b/src/main.ts', 'changed');
    expect(() => requireSameBuild(first, buildId(root))).not.toThrow();
    write('libs/c/dist/deep/index.js', 'three');
    expect(() => requireSameBuild(first, buildId(root))).toThrow('The code was built again');
    write('libs/c/dist/deep/index.js', 'two');
    write('libs/c/dist/new.js', '');
    expect(() => requireSameBuild(first, buildId(root))).toThrow('The code was built again');
  } finally {
    rmSync(root, { recursive: true });
  }
});
