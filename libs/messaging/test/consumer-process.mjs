// A real process that consumes, for the tests that kill it: `credit-news` as the given group, from the sources. Prints
// a JSON line with the versions of each handler call. Its handler returns until `handled` different messages were seen,
// and then hangs.
import Module, { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from '@swc/core';
import { swcOptions } from '../../../tools/build/swc.mjs';

const libs = join(import.meta.dirname, '..', '..');
Module._extensions['.ts'] = (module, filename) =>
  module._compile(transformSync(readFileSync(filename, 'utf8'), { ...swcOptions, filename }).code, filename);
const resolveFilename = Module._resolveFilename;
Module._resolveFilename = function (request, ...rest) {
  const own = /^@tollgate\/([^/]+)$/.exec(request);
  return resolveFilename.call(this, own ? join(libs, own[1], 'src/index.ts') : request, ...rest);
};
const require = createRequire(import.meta.url);

require('reflect-metadata');
const { REQUEST_TOPICS, SERVICES } = require('@tollgate/contracts');
const { KafkaMessages, MessageKeys, PostgresMessages } = require('@tollgate/messaging');
const { transport, options, keys, replyPartitions, group, handled } = JSON.parse(process.argv[2]);
// As in the process of the test.
if (replyPartitions) REQUEST_TOPICS.replies.partitions = replyPartitions;
const messages =
  transport === 'kafka'
    ? new KafkaMessages({ ...options, identity: { services: SERVICES, keys: new MessageKeys(keys) } })
    : new PostgresMessages(options);
const seen = new Set();
messages.consume('credit-news', group, async (batch) => {
  for (const { tenantId, version } of batch) seen.add(`${tenantId}/${version}`);
  process.stdout.write(`${JSON.stringify(batch.map(({ version }) => version))}\n`);
  if (seen.size > handled) await new Promise(() => {});
});
await messages.start();
process.stdout.write('started\n');
