import { PostgresAdmissionStore } from '@tollgate/admission';
import { mintCredential, newId } from '@tollgate/contracts';
import { PostgresCredentialStore } from '@tollgate/credentials';
import { eventually, onceServed, PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { delivered, pace, type PacedStream, send, TOKEN_EVERY_MS, UNRECORDED_TOKENS } from './paced-stream';
import { configYaml } from '../use-gateway';

/** Uses the real lease and long standstills, which takes minutes. */
const FULL = process.env['TOLLGATE_TEST_FULL_LEASE'] === '1';
const [LEASE_MS, HEARTBEAT_MS] = FULL ? [10_000, 1_000] : [2_000, 100];
const STREAMS = 4;
const REPEATS = 20;
const MAX_ROUNDS = 12;
/** Tokens that a backend sends as soon as the gateway stands still, and again when the hold has ended. */
const FLOOD_TOKENS = 300;
const READY_WITHIN_MS = 60_000;
const SWEPT_WITHIN_MS = 60_000;

const directory = mkdtempSync(join(tmpdir(), 'tollgate-stopped-'));
const unblock = join(directory, 'unblock');
const mute = join(directory, 'mute');
const waiting = new Map<string, (response: ServerResponse) => void>();
const backend = createServer((request, response) => {
  let body = '';
  request.on('data', (part: Buffer) => (body += part.toString()));
  request.on('end', () => {
    response.setHeader('content-type', request.headers.accept!);
    waiting.get((JSON.parse(body) as { messages: { content: string }[] }).messages[0]!.content)!(response);
  });
});
let store: PostgresAdmissionStore;
let gateway: ChildProcess;
let url: string;
let said = '';
const key = mintCredential('key');
const tenantId = newId('ten');

afterAll(async () => {
  gateway.kill('SIGCONT');
  const exited = new Promise((resolve) => gateway.once('exit', resolve));
  gateway.kill('SIGKILL');
  await exited;
  await store.close();
  backend.closeAllConnections();
  await new Promise((resolve) => backend.close(resolve));
  rmSync(directory, { recursive: true });
});
// Declared after the `afterAll` above, so that the database is dropped last.
const database = useTestDatabase();
beforeAll(async () => {
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve));
  const { port } = backend.address() as AddressInfo;
  const config = join(directory, 'tollgate.yaml');
  const model = `  - { id: own, kind: chat, contextTokens: 131072, maxOutputTokens: 65536,
      price: { input: '1', output: '2' }, backends: [{ url: 'http://127.0.0.1:${port}/v1' }] }`;
  writeFileSync(config, configYaml({ models: model }));
  store = new PostgresAdmissionStore({ url: database.url, leaseMs: LEASE_MS });
  const writes = { applicationName: 'stopped-gateway-test', callTimeoutMs: PATIENT_CALL_MS };
  const keys = new PostgresCredentialStore({ url: database.url, ...writes });
  await Promise.all([store.start(), keys.start()]);
  const record = {
    hash: key.hash,
    kind: 'key',
    id: newId('key'),
    tenantId,
    plan: 'default',
    profile: 'default',
  } as const;
  await keys.put([{ ...record, scopes: [], expiresAtMs: null, revokedAtMs: null, version: 1 }]);
  await keys.close();
  await store.applyBalanceUpdates([
    { tenantId, version: 1n, balanceNanos: 10n ** 15n, releases: [], suspended: false },
  ]);
  gateway = spawn(process.execPath, [join(__dirname, 'gateway-process.mjs')], {
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      DATABASE_URL: database.url,
      TOLLGATE_CONFIG: config,
      UNBLOCK: unblock,
      MUTE: mute,
      LEASE_MS: String(LEASE_MS),
      HEARTBEAT_MS: String(HEARTBEAT_MS),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  gateway.stdout!.on('data', (part: Buffer) => (said += part.toString()));
  await eventually(() => expect(said).toContain('{"url"'), { timeoutMs: READY_WITHIN_MS });
  url = (JSON.parse(said.split('\n').find((line) => line.startsWith('{"url"'))!) as { url: string }).url;
});
function ask(name: string, stream: boolean): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.value}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'own', stream, messages: [{ role: 'user', content: name }] }),
  });
}

async function open(name: string): Promise<PacedStream> {
  const arrived = new Promise<ServerResponse>((resolve) => waiting.set(name, resolve));
  const answering = onceServed(() => ask(name, true));
  const stream: PacedStream = {
    backend: await arrived,
    id: null,
    sent: 1,
    recorded: 0,
    text: '',
    isOver: false,
    done: Promise.resolve(),
  };
  send(stream, 1);
  const answer = await answering;
  expect(answer.status).toBe(200);
  stream.id = answer.headers.get('x-request-id');
  stream.done = (async () => {
    for await (const part of answer.body!) stream.text += Buffer.from(part).toString('latin1');
    stream.isOver = true;
  })();
  return stream;
}

async function look(
  streams: PacedStream[],
): Promise<Map<string, { state: string; recorded: number; charged: number }>> {
  const rows = await database.query<{ id: string; state: string; recorded: number; charged: number }>(
    `SELECT id, state, coalesce((delivered->>'completionTokens')::int, 0) AS recorded,
       CASE WHEN state = 'settled' THEN (record->>'completionTokens')::int ELSE 0 END AS charged
     FROM admission.hold WHERE id = ANY ($1)`,
    [streams.map(({ id }) => id)],
  );
  const byId = new Map(rows.map((row) => [row.id, row]));
  for (const stream of streams) stream.recorded = Math.max(stream.recorded, byId.get(stream.id!)?.recorded ?? 0);
  return byId;
}

/** A way in which a gateway stands still and continues. */
interface Standstill {
  name: string;
  begin: () => void;
  hasBegun: () => void;
  end: () => void;
  /** With the real lease. */
  atLeastMs: number;
  /** Whether backends can send many tokens during the standstill. Otherwise only when the holds have ended. */
  floodsAtOnce: boolean;
}

const STANDSTILLS: Standstill[] = [
  {
    name: 'stopped, as by a debugger or a suspended machine',
    begin: () => void gateway.kill('SIGSTOP'),
    hasBegun: () => expect(execFileSync('ps', ['-o', 'state=', '-p', String(gateway.pid)]).toString()).toMatch(/^T/),
    end: () => void gateway.kill('SIGCONT'),
    atLeastMs: 15_000,
    floodsAtOnce: true,
  },
  {
    name: 'event loop blocked',
    begin: () => {
      rmSync(unblock, { force: true });
      said = '';
      gateway.kill('SIGUSR2');
    },
    hasBegun: () => expect(said).toContain('still'),
    end: () => writeFileSync(unblock, ''),
    atLeastMs: 28_000,
    floodsAtOnce: true,
  },
  {
    name: 'no heartbeat answered',
    begin: () => writeFileSync(mute, ''),
    hasBegun: () => {},
    end: () => rmSync(mute),
    atLeastMs: 0,
    floodsAtOnce: false,
  },
];

const standStill = (name: string) => STANDSTILLS.find((one) => one.name.startsWith(name))!;

/**
 * Runs streams, lets the gateway stand still until the sweeper has ended all their holds, and lets it continue. Returns
 * how many streams were running when it began to stand still.
 */
async function round(n: number, standstill: Standstill): Promise<number> {
  const names = Array.from({ length: STREAMS }, (_, i) => `${standstill.name} ${n} ${i}`);
  const streams = await Promise.all(names.map(open));
  let isPaced = true;
  const paced = streams.map((stream) => pace(stream, () => isPaced));
  const stopPacing = () => ((isPaced = false), Promise.all(paced));
  await eventually(
    async () => {
      await look(streams);
      for (const { isOver, recorded } of streams) expect(isOver || recorded > 0).toBe(true);
    },
    { timeoutMs: SWEPT_WITHIN_MS },
  );
  const ran = streams.filter(({ isOver }) => !isOver).length;
  standstill.begin();
  await eventually(standstill.hasBegun);
  if (standstill.floodsAtOnce) {
    await stopPacing();
    for (const stream of streams) send(stream, FLOOD_TOKENS);
  }
  const since = performance.now();
  await eventually(
    async () => {
      await store.sweep({ limit: 100, confirmAfterMs: 3_600_000 });
      for (const { state } of (await look(streams)).values()) expect(state).toBe('settled');
    },
    { timeoutMs: SWEPT_WITHIN_MS },
  );
  if (FULL) await setTimeout(Math.max(0, standstill.atLeastMs - (performance.now() - since)));
  await stopPacing();
  for (const stream of streams) send(stream, FLOOD_TOKENS);
  if (standstill.floodsAtOnce) standstill.end();
  await Promise.all(streams.map(({ done }) => done));
  if (!standstill.floodsAtOnce) standstill.end();
  const books = await look(streams);
  for (const stream of streams) {
    const { charged } = books.get(stream.id!)!;
    if (FULL) process.stdout.write(`${standstill.name}: delivered ${delivered(stream)}, charged ${charged}\n`);
    expect(delivered(stream)).toBeLessThanOrEqual(charged + UNRECORDED_TOKENS);
    expect(delivered(stream)).toBeGreaterThanOrEqual(charged);
    expect(stream.text).toMatch(/"code":"overloaded_error"\}\}\n\ndata: \[DONE\]\n\n$/);
  }
  return ran;
}

describe('after the deadline of its hold', () => {
  it('a stream whose hold is not swept yet stops and pays for everything that it delivered', async () => {
    const stream = await open('nobody sweeps');
    standStill('no heartbeat answered').begin();
    while (!stream.isOver) {
      send(stream, 1);
      await setTimeout(TOKEN_EVERY_MS);
    }
    standStill('no heartbeat answered').end();
    expect(stream.text).toMatch(/"code":"overloaded_error"\}\}\n\ndata: \[DONE\]\n\n$/);
    const { state, charged } = (await look([stream])).get(stream.id!)!;
    expect([state, charged]).toEqual(['settled', delivered(stream)]);
    expect(charged).toBeGreaterThan(0);
  });

  it('a client that waits for a silent backend gets an error, because no hold pays for the answer', async () => {
    const stream = await open('a silent backend');
    const arrived = new Promise<ServerResponse>((resolve) => waiting.set('a silent one', resolve));
    const answering = ask('a silent one', false);
    const silent = await arrived;
    const stopped = new Promise((resolve) => silent.once('close', resolve));
    standStill('no heartbeat answered').begin();
    // Neither backend sends a byte, and the store does not answer.
    const answer = await answering;
    await Promise.all([stream.done, stopped]);
    standStill('no heartbeat answered').end();
    expect(answer.status).toBe(503);
    expect(stream.text).toMatch(/"code":"overloaded_error"\}\}\n\ndata: \[DONE\]\n\n$/);
    expect((await look([stream])).get(stream.id!)).toMatchObject({ state: 'settled', charged: delivered(stream) });
  });

  it('a plain answer is not sent, and nobody pays', async () => {
    const arrived = new Promise<ServerResponse>((resolve) => waiting.set('plain', resolve));
    const answering = ask('plain', false);
    const response = await arrived;
    const [row] = await database.query<{ id: string }>(`SELECT id FROM admission.hold WHERE state = 'pending'`);
    standStill('stopped').begin();
    await eventually(standStill('stopped').hasBegun);
    response.end(JSON.stringify({ choices: [{ index: 0, message: { content: 'too late' }, finish_reason: 'stop' }] }));
    await eventually(
      async () => {
        await store.sweep({ limit: 100, confirmAfterMs: 3_600_000 });
        expect(await database.query('SELECT FROM admission.hold WHERE id = $1', [row!.id])).toHaveLength(0);
      },
      { timeoutMs: SWEPT_WITHIN_MS },
    );
    standStill('stopped').end();
    const answer = await answering;
    expect(answer.status).toBe(503);
    expect(await answer.text()).not.toContain('too late');
  });
});

describe('a stream whose gateway stands still until its hold has ended', () => {
  it.each(STANDSTILLS)(
    'delivers at most the charged tokens and those between two heartbeats ($name)',
    async (standstill) => {
      let repeats = 0;
      for (let n = 0; repeats < REPEATS && n < MAX_ROUNDS; n++) repeats += await round(n, standstill);
      expect(repeats).toBeGreaterThanOrEqual(REPEATS);
    },
    FULL ? 1_800_000 : 180_000,
  );
});
