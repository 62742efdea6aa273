import { metrics } from '@tollgate/runtime';
import { eventually } from '@tollgate/testing';
import type { ServerResponse } from 'node:http';
import { usePlayedBackend } from '../backends/played-backend';
import { type Caller, expectSettledAt, useGateway } from '../use-gateway';

const MIB = 1024 * 1024;
const PER_TENANT = 4 * MIB;
/** More than the limit of a tenant and all buffers between a backend and a gateway that does not read. */
const LARGE_MIB = 24;
/** More than what is not counted. */
const MODEST_MIB = 1;

const backend = usePlayedBackend(
  'own',
  (url) =>
    `  - { id: vectors, kind: embedding, contextTokens: 256,
      price: { input: '1', output: '0' }, backends: [{ url: '${url}' }] }`,
);
const gateway = useGateway({ yaml: backend.yaml, arrivingAnswers: { perTenant: PER_TENANT, all: 16 * MIB } });

/** The JSON of a vector with about this length. */
function vectorOf(mib: number): string {
  const number = '-0.12345678901234';
  const numbers = Array.from({ length: (mib * MIB) / (number.length + 1) }, () => number).join(',');
  const data = `[{"object":"embedding","index":0,"embedding":[${numbers}]}]`;
  return `{"object":"list","data":${data},"usage":{"prompt_tokens":1,"total_tokens":1}}`;
}
const LARGE = vectorOf(LARGE_MIB);
const MODEST = vectorOf(MODEST_MIB);

async function bytesOf(state: string): Promise<number> {
  const { values } = await metrics.getSingleMetric('tollgate_unread_answer_bytes')!.get();
  return values.find(({ labels }) => labels['state'] === state)!.value;
}

/** Asks for a vector. The backend answers as the test says. */
async function ask(caller: Caller, play: (response: ServerResponse) => void) {
  const begun = new Promise<void>((resolve) => {
    backend.state.play = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      play(response);
      resolve();
    };
  });
  const state = { ended: false, bytes: Promise.resolve(0) };
  state.bytes = gateway.post('/v1/embeddings', { model: 'vectors', input: 'a' }, caller).then(async (response) => {
    expect(response.status).toBe(200);
    const { byteLength } = await response.arrayBuffer();
    state.ended = true;
    return byteLength;
  });
  await begun;
  return state;
}

it('lets large answers of a tenant arrive one after the other beyond its limit, and delays no other tenant', async () => {
  const [greedy, other] = [await gateway.caller(), await gateway.caller()];
  let goOn: () => void = () => {};
  const half = LARGE.length / 2;
  const first = await ask(greedy, (response) => {
    response.write(LARGE.slice(0, half));
    goOn = () => response.end(LARGE.slice(half));
  });
  await eventually(async () => expect(await bytesOf('arriving')).toBeGreaterThanOrEqual(half));
  let sent: ServerResponse | undefined;
  const second = await ask(greedy, (response) => (sent = response).end(LARGE));
  await eventually(async () => expect(await bytesOf('arriving')).toBeGreaterThan(half + 128 * 1024));
  const third = await ask(other, (response) => response.end(MODEST));
  expect(await third.bytes).toBeGreaterThan(0.9 * MODEST_MIB * MIB);
  expect([first.ended, second.ended, sent!.writableFinished]).toEqual([false, false, false]);
  expect(await bytesOf('arriving')).toBeLessThan(half + 2 * MIB);
  goOn();
  expect(await first.bytes).toBeGreaterThan(0.9 * LARGE_MIB * MIB);
  expect(await second.bytes).toBeGreaterThan(0.9 * LARGE_MIB * MIB);
  await eventually(async () => expect([await bytesOf('arriving'), await bytesOf('sent')]).toEqual([0, 0]));
  const events = await gateway.events(greedy.tenantId, 2);
  const cost = events.reduce((sum, { costNanos }) => sum + BigInt(costNanos), 0n);
  await expectSettledAt(gateway, greedy, cost);
});
