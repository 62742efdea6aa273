// Reads a .cpuprofile of V8: how long each function was at the top of the stack.
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../../setup/prepare.mjs';

const IDLE = ['(idle)', '(root)'];

/**
 * @param {{ nodes: object[], samples: number[], timeDeltas: number[], startTime: number }} profile
 * @param {{ fromMicros: number, toMicros: number }} window  of process.hrtime: what came before was the start
 * @returns {{ name: string, at: string, micros: number }[]} the longest first, without idling
 */
export function selfTimes({ nodes, samples, timeDeltas, startTime }, { fromMicros, toMicros }) {
  const callOf = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const times = new Map();
  let now = startTime;
  samples.forEach((id, i) => {
    now += timeDeltas[i];
    const { functionName, url, lineNumber } = callOf.get(id);
    // A sample lasts until the next one.
    if (now < fromMicros || now > toMicros || IDLE.includes(functionName)) return;
    const name = functionName || '(anonymous)';
    const at = url ? `${shortened(url)}:${lineNumber + 1}` : '';
    const known = times.get(`${name} ${at}`) ?? { name, at, micros: 0 };
    known.micros += timeDeltas[i + 1] ?? 0;
    times.set(`${name} ${at}`, known);
  });
  return [...times.values()].sort((a, b) => b.micros - a.micros);
}

/**
 * The same by where the functions are: a package, a stage of an app, a library of ours, Node's own JavaScript, or
 * native code, which V8 shows without a file.
 * @returns {{ name: string, micros: number }[]} the longest first
 */
export function byOrigin(times) {
  const sums = new Map();
  for (const { name, at, micros } of times) {
    const origin = originOf(name, at);
    sums.set(origin, (sums.get(origin) ?? 0) + micros);
  }
  return [...sums].map(([name, micros]) => ({ name, micros })).sort((a, b) => b.micros - a.micros);
}

function originOf(name, at) {
  if (at === '') return name === '(garbage collector)' ? name : 'native code';
  if (at.startsWith('node:')) return 'node';
  const [, ours] = /^((?:apps\/[^/]+\/dist\/[^/]+|libs\/[^/]+))\//.exec(at) ?? [];
  if (ours !== undefined) return ours.replace('/dist/', '/');
  return /^(@[^/]+\/)?[^/]+/.exec(at)[0];
}

/** From the root of the repository; of a package from its name on. */
function shortened(url) {
  if (!url.startsWith('file:') && !url.startsWith('/')) return url;
  const path = url.startsWith('file:') ? fileURLToPath(url) : url;
  return relative(ROOT, path).replace(/^.*node_modules\//, '');
}
