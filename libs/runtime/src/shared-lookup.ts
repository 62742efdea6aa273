import dns from 'node:dns';
import type { LookupFunction } from 'node:net';

type Callback = Parameters<LookupFunction>[2];

const underWay = new Map<string, Callback[]>();

/**
 * `dns.lookup` with one call at a time for each name. Concurrent callers share the answer. For `lookup` of
 * `net.connect`.
 * A lookup occupies a thread of libuv's pool (4 by default) until it ends. The name of a removed container takes many
 * seconds to fail, and each connection attempt asks again. Without sharing, a Kafka that is down would occupy all
 * threads, and the lookup of a healthy backend would wait behind them.
 */
export const sharedLookup: LookupFunction = (hostname, options, callback) => {
  const { family = 0, hints = 0, all = false } = options;
  const key = JSON.stringify([hostname, family, hints, all, options.order ?? options.verbatim]);
  const waiting = underWay.get(key);
  if (waiting) return void waiting.push(callback);
  const callbacks = [callback];
  underWay.set(key, callbacks);
  dns.lookup(hostname, options, (...answer) => {
    underWay.delete(key);
    for (const each of callbacks) each(...(answer as Parameters<Callback>));
  });
};
