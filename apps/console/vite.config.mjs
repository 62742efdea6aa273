import react from '@vitejs/plugin-react';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { defineConfig } from 'vite';

/** The best quality takes ten times as long, for a twentieth of the size. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };

/** Each asset is compressed once, when it is built. The backend serves these files as they are. */
const compressed = {
  name: 'compressed',
  apply: 'build',
  async writeBundle({ dir }, bundle) {
    const assets = Object.keys(bundle).filter((name) => name.startsWith('assets/'));
    await Promise.all(
      assets.map(async (name) => {
        const plain = await readFile(join(dir, name));
        await writeFile(join(dir, `${name}.br`), await promisify(brotliCompress)(plain, BROTLI));
        await writeFile(join(dir, `${name}.gz`), await promisify(gzip)(plain));
      }),
    );
  },
};

/** The pages of the console. tools/build/build.mjs runs it after the backend was compiled. */
export default defineConfig({
  root: import.meta.dirname + '/web',
  base: '/console/',
  plugins: [react(), compressed],
  build: {
    outDir: '../dist/web',
    // Tells the backend which scripts a page needs (src/http/preloads.ts).
    manifest: 'manifest.json',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    target: 'es2023',
    // The pages are split by route. The first load has its own bar in the tests.
    chunkSizeWarningLimit: 1_000,
  },
  logLevel: 'warn',
});
