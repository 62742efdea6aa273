#!/usr/bin/env node
// The `tollgate` command: runs apps/cli on Node 24, in the caller's folder.
import { join } from 'node:path';
import { launch } from './setup/launch.mjs';
import { prepare, ROOT } from './setup/prepare.mjs';

try {
  await prepare();
  process.exitCode = await launch([join(ROOT, 'apps', 'cli', 'dist', 'main.js'), ...process.argv.slice(2)]).exited;
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
