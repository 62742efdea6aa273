// Compiles src/ of each project to dist/ with swc, and copies the other files (SQL, YAML, HTML). Types are checked by
// `npm run typecheck`. Usage: build.mjs <projectRoot> [<projectRoot> …]
import { transformFile } from '@swc/core';
import { cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { swcOptions } from './swc.mjs';

/** @param {string} root a project's folder */
export async function build(root) {
  const src = join(root, 'src');
  const dist = join(root, 'dist');
  await rm(dist, { recursive: true, force: true });
  const entries = await readdir(src, { recursive: true, withFileTypes: true });
  await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async (entry) => {
        const file = join(entry.parentPath, entry.name);
        const out = join(dist, relative(src, file));
        if (/\.(test|suite|part|fixture)\.ts$/.test(file) || file.endsWith('.d.ts')) return;
        await mkdir(dirname(out), { recursive: true });
        if (!file.endsWith('.ts')) return cp(file, out);
        const { code, map } = await transformFile(file, { ...swcOptions, sourceMaps: true });
        const js = out.replace(/\.ts$/, '.js');
        await writeFile(js, `${code}\n//# sourceMappingURL=${entry.name.replace(/\.ts$/, '.js.map')}\n`);
        await writeFile(`${js}.map`, map);
      }),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await Promise.all(process.argv.slice(2).map(build));
