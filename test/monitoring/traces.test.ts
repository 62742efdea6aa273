import { eventually, useTestDatabase } from '@tollgate/testing';
import type { Ready } from '../e2e/deployment';
import { createTenant, type TestTenant } from '../e2e/fixtures';
import { StandaloneProcess, useDataDirectory } from '../e2e/standalone-process';
import { writeConfig } from '../e2e/fixtures';
import { OtlpReceiver } from './otlp-receiver';

const PATIENT = { timeoutMs: 60_000 };
const PARENT_SPAN = '00f067aa0ba902b7';
/** By the trace id's second half, the first is kept at 50 percent and the second is not. */
const KEPT = '4bf92f3577b34da60000000000000001';
const NOT_KEPT = '4bf92f3577b34da6f000000000000001';
const FIRST = '6bf92f3577b34da6f000000000000001';
const PROMPT = 'The secret prompt of this client';

const directory = useDataDirectory();
const database = useTestDatabase();
let receiver: OtlpReceiver;
let tollgate: StandaloneProcess & { ready: Ready };
let tenant: TestTenant;

beforeAll(async () => {
  receiver = await OtlpReceiver.start();
  tollgate = await StandaloneProcess.start({
    DATABASE_URL: database.url,
    TOLLGATE_DATA_DIR: directory.path,
    TOLLGATE_CONFIG: writeConfig(directory.path),
    TOLLGATE_TRACES_URL: receiver.url,
    TOLLGATE_TRACES_PERCENT: '50',
  });
  tenant = await createTenant(tollgate.ready, 10_000);
  // On a busy machine, the first request of a new process may not be admitted in time.
  await eventually(async () => expect((await chat(FIRST)).status).toBe(200), PATIENT);
});
afterAll(() => receiver.close());

async function chat(traceId: string, body: object = {}): Promise<{ status: number; id: string; text: string }> {
  const response = await fetch(`${tollgate.ready.inferenceUrl}/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${tenant.key}`,
      'content-type': 'application/json',
      traceparent: `00-${traceId}-${PARENT_SPAN}-01`,
    },
    body: JSON.stringify({ model: 'sim', messages: [{ role: 'user', content: PROMPT }], max_tokens: 800, ...body }),
  });
  return { status: response.status, id: response.headers.get('x-tollgate-id') ?? '', text: await response.text() };
}

it('one trace leads from the caller’s through every stage, metering and billing to the posting', async () => {
  expect((await chat(KEPT, { stream: true, simulator: { answerTokens: 600 } })).status).toBe(200);
  const spans = await eventually(() => {
    const found = receiver.ofTrace(KEPT);
    expect(found.map(({ name }) => name).sort()).toEqual(
      [
        'POST chat',
        'admit',
        'authenticate',
        'chat sim',
        'post',
        'process charges',
        'process usage-events',
        'read',
        'settle',
      ].sort(),
    );
    return new Map(found.map((span) => [span.name, span]));
  }, PATIENT);
  const request = spans.get('POST chat')!;
  expect(request.parentSpanId).toBe(PARENT_SPAN);
  for (const [name, span] of spans)
    if (name !== 'POST chat') expect([name, span.parentSpanId]).toEqual([name, request.spanId]);
  const stages = ['authenticate', 'read', 'admit', 'chat sim', 'settle'].map((name) => spans.get(name)!);
  expect(stages[0]!.startNs).toBe(request.startNs);
  for (const [index, stage] of stages.entries()) {
    expect(stage.endNs).toBeGreaterThanOrEqual(stage.startNs);
    if (index > 0) expect(stage.startNs).toBe(stages[index - 1]!.endNs);
  }
  expect(request.endNs).toBeGreaterThanOrEqual(stages.at(-1)!.endNs);
  const call = spans.get('chat sim')!;
  expect(call.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'sim',
    'gen_ai.usage.output_tokens': 600,
    'tollgate.backend': 'simulator:',
  });
  expect(call.events.map(({ name }) => name)).toEqual(['first_token']);
  expect(call.events[0]!.atNs).toBeGreaterThan(call.startNs);
  expect(call.events[0]!.atNs).toBeLessThanOrEqual(call.endNs);
  expect(request.attributes).toMatchObject({
    'http.response.status_code': 200,
    'tollgate.tenant.id': tenant.id,
    'tollgate.key.id': tenant.keyId,
    'tollgate.outcome': 'complete',
  });
  expect(spans.get('post')!.attributes['tollgate.entry.id']).toMatch(/^ent_/);
});

it('a trace that is not chosen is kept only if its request fails by our fault', async () => {
  const fails = { simulator: { faults: [{ kind: 'status', status: 500 }] } };
  expect((await chat(NOT_KEPT)).status).toBe(200);
  expect((await chat(NOT_KEPT, { model: 'no-such-model' })).status).toBe(404);
  expect((await chat(NOT_KEPT, fails)).status).toBe(502);
  const found = await eventually(() => {
    const spans = receiver.ofTrace(NOT_KEPT);
    expect(spans.map(({ name }) => name)).toContain('POST chat');
    return spans;
  }, PATIENT);
  // The two requests before it have left no span, in any service.
  expect(found.filter(({ name }) => name === 'POST chat')).toHaveLength(1);
  expect(found.map(({ name }) => name).filter((name) => name.startsWith('process'))).toEqual([]);
  const request = found.find(({ name }) => name === 'POST chat')!;
  expect([request.failed, request.attributes['error.type']]).toEqual([true, 'upstream_error']);
  expect(request.attributes['http.response.status_code']).toBe(502);
});

it('a line of the log has the id of the trace', async () => {
  await eventually(() => {
    const lines = tollgate.stderr.split('\n').filter((line) => line.includes(`"traceId":"${NOT_KEPT}"`));
    expect(lines.length).toBeGreaterThan(0);
  }, PATIENT);
});

it('no span has a prompt, an answer or a credential', async () => {
  const answered = await chat(KEPT);
  const { choices } = JSON.parse(answered.text) as { choices: { message: { content: string } }[] };
  await eventually(
    () => expect(receiver.ofTrace(KEPT).filter(({ name }) => name === 'POST chat')).toHaveLength(2),
    PATIENT,
  );
  for (const text of [PROMPT, choices[0]!.message.content.slice(0, 40), tenant.key, tenant.key.slice(-20)])
    expect(receiver.text).not.toContain(text);
});

it('spans that wait are sent before the process ends', async () => {
  const last = '5bf92f3577b34da60000000000000001';
  expect((await chat(last)).status).toBe(200);
  expect(await tollgate.end()).toBe(0);
  expect(receiver.ofTrace(last).map(({ name }) => name)).toEqual(
    expect.arrayContaining(['POST chat', 'process charges']),
  );
});
