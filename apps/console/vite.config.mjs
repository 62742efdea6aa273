import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** The pages of the console. tools/build/build.mjs runs it after the backend was compiled. */
export default defineConfig({
  root: import.meta.dirname + '/web',
  base: '/console/',
  plugins: [react()],
  build: {
    outDir: '../dist/web',
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
