// How long this machine's disk takes to make a commit durable: no database is quicker.
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const TIMES = 51;
const PAGE = Buffer.alloc(8_192, 1);

/** The middle of some writes of 8 KiB with fdatasync, where the standalone form has its data. */
export function syncMs() {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  const file = openSync(join(folder, 'synced'), 'w');
  try {
    const times = Array.from({ length: TIMES }, () => {
      const began = performance.now();
      writeSync(file, PAGE);
      fdatasyncSync(file);
      return performance.now() - began;
    });
    return times.sort((a, b) => a - b)[TIMES >> 1];
  } finally {
    closeSync(file);
    rmSync(folder, { recursive: true });
  }
}
