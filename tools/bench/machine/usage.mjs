// What processes cost: CPU and memory, from /proc. On a system without /proc every figure is 0.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const TICKS_PER_SECOND = 100;
/** State of a socket in /proc/net/tcp. */
const LISTENS = '0A';

/** The processes that descend from these, these among them; each once. */
export function treeOf(roots) {
  const childrenOf = new Map();
  for (const name of entries('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(statOf(name)[1]);
    childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), Number(name)]);
  }
  const tree = new Set(roots);
  // What is added on the way is visited, too.
  for (const pid of tree) for (const child of childrenOf.get(pid) ?? []) tree.add(child);
  return [...tree];
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

/** Seconds for which a core, or all of them, worked: for processes or for another machine on the same host. */
export function busySeconds(core) {
  const name = core === undefined ? 'cpu ' : `cpu${core} `;
  const line = read('/proc/stat')
    .split('\n')
    .find((each) => each.startsWith(name));
  // Without interrupts, which no process is charged for.
  const [user = 0, nice = 0, system = 0, , , , , steal = 0] =
    line?.slice(name.length).trim().split(/\s+/).map(Number) ?? [];
  return (user + nice + system + steal) / TICKS_PER_SECOND;
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

/** The processes that listen on a port of this machine, as far as this user may know. */
export function listenersOn(port) {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const inodes = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    read(file)
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local, , state]) => local?.endsWith(suffix) && state === LISTENS)
      .map((fields) => `socket:[${fields[9]}]`),
  );
  return entries('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => entries(`/proc/${pid}/fd`).some((fd) => inodes.includes(target(`/proc/${pid}/fd/${fd}`))))
    .map(Number);
}

function target(link) {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
}
