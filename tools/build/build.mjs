// Compiles src/ of each project to dist/ with swc, copies the other files (SQL, YAML, HTML), and then runs each
// compiled *.build.ts. Types are checked by `npm run typecheck`. Builds the pages of a project with a web/ folder by
// Vite. Usage: build.mjs [--no-web] <projectRoot> [<projectRoot> …]
import { transformFile } from '@swc/core';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { swcOptions } from './swc.mjs';

const run = promisify(execFile);

/**
 * @param {string} root a project's folder
 * @param {{ web?: boolean }} [options] `web: false` leaves the pages out, where Vite is not installed
 */
export async function build(root, { web = true } = {}) {
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
  for (const { parentPath, name } of entries.filter((entry) => /\.build\.ts$/.test(entry.name)))
    await run(process.execPath, [join(dist, relative(src, parentPath), name.replace(/\.ts$/, '.js'))]);
  if (web && existsSync(join(root, 'web'))) await buildPages(root);
}

/**
 * Loads Vite only for a project with pages. Vite takes React's larger build for development where NODE_ENV is already
 * set to something else, as in Jest.
 */
async function buildPages(root) {
  const vite = await import('vite');
  const given = process.env.NODE_ENV;
  process.env.NODE_ENV = 'production';
  try {
    await vite.build({ configFile: resolve(root, 'vite.config.mjs'), mode: 'production' });
  } finally {
    if (given === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = given;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { 'no-web': { type: 'boolean' } } });
  await Promise.all(positionals.map((root) => build(root, { web: !values['no-web'] })));
}
