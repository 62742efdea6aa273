// Runs an app's main.ts as a process of its own, straight from the sources: `node run-ts.mjs apps/cli/src/main.ts …`. What Jest does by its transform
// and name mapping is done here by Node's hooks, so that no test depends on what lies in dist.
import { transformSync } from '@swc/core';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { swcOptions } from '../../tools/build/swc.mjs';

const ROOT = resolve(import.meta.dirname, '../..');
const source = (file) => ({ url: pathToFileURL(file).href, format: 'commonjs', shortCircuit: true });

registerHooks({
  resolve(specifier, context, next) {
    const lib = /^@tollgate\/([^/]+)$/.exec(specifier)?.[1];
    if (lib) return source(join(ROOT, 'libs', lib, 'src/index.ts'));
    if (specifier.startsWith('.') && context.parentURL?.endsWith('.ts')) {
      const base = resolve(fileURLToPath(context.parentURL), '..', specifier.replace(/\.js$/, ''));
      const file = [`${base}.ts`, join(base, 'index.ts')].find((candidate) => existsSync(candidate));
      if (file) return source(file);
    }
    return next(specifier, context);
  },
  load(url, context, next) {
    if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context);
    const filename = fileURLToPath(url);
    const { code } = transformSync(readFileSync(filename, 'utf8'), { ...swcOptions, filename });
    return { format: 'commonjs', source: code, shortCircuit: true };
  },
});

process.argv.splice(1, 1);
createRequire(import.meta.url)(resolve(process.argv[1]));
