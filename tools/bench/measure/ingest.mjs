// Metering against a raw COPY of the same rows: apps/metering/bench/ingest.mjs, which has a PostgreSQL of its own.
import { join } from 'node:path';
import { ROOT } from '../../setup/prepare.mjs';
import { runNode } from '../machine/processes.mjs';

const BATCHES = 40;
const QUICK_BATCHES = 5;

/** @returns {Promise<number>} the median ratio: 1 would be as fast as COPY */
export async function ingestRatio({ quick }) {
  // On all cores: what it compares waits for one process at a time.
  const out = await runNode(null, [
    join(ROOT, 'apps/metering/bench/ingest.mjs'),
    String(quick ? QUICK_BATCHES : BATCHES),
  ]);
  return Number(/median ratio ([\d.]+)/.exec(out)[1]);
}
