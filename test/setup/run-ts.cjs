// Runs an app's main.ts as a process of its own, straight from the sources: `node run-ts.cjs apps/cli/src/main.ts …`. What Jest does by its transform
// and name mapping is done here by Node's hooks, so that no test depends on what lies in dist.
const { existsSync, readFileSync } = require('node:fs');
const { registerHooks } = require('node:module');
const { join, resolve } = require('node:path');
const { fileURLToPath, pathToFileURL } = require('node:url');
const { transformSync } = require('@swc/core');
const { swcOptions } = require('../../tools/build/swc.mjs');

const ROOT = resolve(__dirname, '../..');

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
require(resolve(process.argv[1]));
