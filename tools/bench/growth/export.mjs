// The export of a long history, as a client reads it and as the command writes it: time, and the memory of both sides.
import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { ROOT } from '../../setup/prepare.mjs';
import { rssBytes } from '../machine/usage.mjs';
import { figure, table } from '../report/print.mjs';

const DAY_MS = 86_400_000;
/** More than the books have. */
const DAYS = 32;
const LOOK_EVERY_MS = 1_000;
const MIB = 2 ** 20;
/** Each format once, as half an hour is long for four exports. */
const EXPORTS = [
  ['tollgate usage export', 'csv', byCommand],
  ['GET /usage/export', 'ndjson', overHttp],
];

/** @returns {Promise<string>} the table, as Markdown */
export async function exports(form, { directory, say }) {
  const rows = [];
  for (const [name, format, read] of EXPORTS) {
    say(`${name} as ${format} …`);
    rows.push([`${name}, ${format}`, await watched(form, (lines) => read({ form, directory, format, lines }))]);
  }
  return table(
    ['', 'rows', 's', 'rows/s', 'MB', 'server MiB: before, first quarter, last quarter, most', 'client MiB, most'],
    rows.map(([name, run]) => [
      name,
      figure(run.rows),
      figure(run.seconds),
      figure(run.rows / run.seconds),
      figure(run.bytes / 1e6),
      [run.before, ...run.server].map((bytes) => figure(bytes / MIB)).join(', '),
      run.client === null ? '–' : figure(run.client / MIB),
    ]),
  );
}

/** Runs an export, and looks at the memory of the server and of the client once a second. */
async function watched({ parts }, run) {
  const before = rssBytes(parts.standalone);
  const lines = { rows: 0, bytes: 0, pid: null };
  const [server, client] = [[], []];
  const timer = setInterval(() => {
    server.push(rssBytes(parts.standalone));
    if (lines.pid !== null) client.push(rssBytes([lines.pid]));
  }, LOOK_EVERY_MS);
  const began = performance.now();
  try {
    await run(lines);
  } finally {
    clearInterval(timer);
  }
  const seconds = (performance.now() - began) / 1_000;
  const quarter = Math.max(1, Math.floor(server.length / 4));
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    ...{ rows: lines.rows, bytes: lines.bytes, seconds, before },
    server:
      server.length === 0 ? [] : [mean(server.slice(0, quarter)), mean(server.slice(-quarter)), Math.max(...server)],
    client: client.length === 0 ? null : Math.max(...client),
  };
}

function count(lines, chunk) {
  lines.bytes += chunk.length;
  for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines.rows += 1;
}

const rangeOf = () =>
  ['from', 'to'].map((name, i) => [name, new Date(Date.now() - (1 - i) * DAYS * DAY_MS).toISOString()]);

async function overHttp({ form, format, lines }) {
  const { operatorUrl, operatorSecret } = form;
  const query = new URLSearchParams([...rangeOf(), ['step', 'request'], ['format', format]]);
  const answer = await fetch(`${operatorUrl}/_operator/v1/usage/export?${query}`, {
    headers: { authorization: `Bearer ${operatorSecret}` },
  });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  for await (const chunk of answer.body) count(lines, chunk);
}

/** Into a file that nobody keeps, as in `tollgate usage export > file`. */
async function byCommand({ directory, format, lines }) {
  const args = rangeOf().flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawn(
    process.execPath,
    [join(ROOT, 'apps/cli/dist/main.js'), 'usage', 'export', '--step', 'request', '--format', format, ...args],
    { env: { ...process.env, TOLLGATE_DATA_DIR: directory }, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  lines.pid = child.pid;
  const nowhere = createWriteStream('/dev/null');
  child.stdout.on('data', (chunk) => count(lines, chunk));
  child.stdout.pipe(nowhere);
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  lines.pid = null;
  if (code !== 0) throw new Error(`tollgate usage export ended with ${code}`);
  await finished(nowhere);
}
