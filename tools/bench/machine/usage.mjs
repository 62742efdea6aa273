// What processes cost: CPU and memory, from /proc. On a system without /proc every figure is 0.
import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

/** The processes that descend from these, these among them. */
export function treeOf(roots) {
  const childrenOf = new Map();
  for (const name of entries('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(statOf(name)[1]);
    childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), Number(name)]);
  }
  const tree = [...roots];
  for (let at = 0; at < tree.length; at++) tree.push(...(childrenOf.get(tree[at]) ?? []));
  return tree;
}

/**
 * Seconds of CPU that these processes and their descendants have used so far. One that has ended counts with its
 * parent.
 */
export function cpuSeconds(roots) {
  const ticks = treeOf(roots).map((pid) =>
    statOf(pid)
      .slice(11, 15)
      .reduce((sum, field) => sum + Number(field), 0),
  );
  return ticks.reduce((sum, each) => sum + each, 0) / TICKS_PER_SECOND;
}

/** Seconds for which a core, or all of them, did anything at all. */
export function busySeconds(core) {
  const name = core === undefined ? 'cpu ' : `cpu${core} `;
  const line = read('/proc/stat')
    .split('\n')
    .find((each) => each.startsWith(name));
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] =
    line?.slice(name.length).trim().split(/\s+/).map(Number) ?? [];
  return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND;
}

/**
 * Milliseconds of CPU that the first thread of a process has used: of a Node.js process, the one with the event loop.
 */
export const mainThreadCpuMs = (pid) => Number(read(`/proc/${pid}/task/${pid}/schedstat`).split(' ')[0]) / 1e6;

/** Resident memory of these processes and their descendants. */
export const rssBytes = (roots) => sumKib(treeOf(roots), 'status', /VmRSS:\s+(\d+)/);

/** The same, with what they share counted once. */
export const pssBytes = (roots) => sumKib(treeOf(roots), 'smaps_rollup', /^Pss:\s+(\d+)/m);

function sumKib(pids, file, figure) {
  return pids.reduce((sum, pid) => sum + Number(figure.exec(read(`/proc/${pid}/${file}`))?.[1] ?? 0) * 1_024, 0);
}

/** The fields of /proc/<pid>/stat behind the name: state, parent, … none where the process is gone. */
const statOf = (pid) => read(`/proc/${pid}/stat`).split(') ')[1]?.split(' ') ?? [];

function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function entries(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
