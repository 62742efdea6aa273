// The test of the chart (helm test): makes a tenant, buys credit, completes a plain and a streamed chat, waits until
// both are debited, and proves the books. Runs in the image `tools`.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const ANSWER_WAIT_MS = 60_000;
const DEBIT_WAIT_MS = 60_000;
const RECONCILE_WAIT_MS = 60_000;
const POLL_MS = 1_000;
const { TOLLGATE_PUBLIC_URL: publicUrl, TOLLGATE_TEST_MODEL: model, TOLLGATE_TEST_SECRET: secretFile } = process.env;
process.env.TOLLGATE_OPERATOR_SECRET = readFileSync(secretFile, 'utf8').trim();

/** Runs the `tollgate` command and returns its JSON. */
const tollgate = (...args) =>
  JSON.parse(execFileSync('node', ['apps/cli/dist/main.js', ...args, '--json'], { encoding: 'utf8' }));
const say = (line) => process.stdout.write(`${line}\n`);

/** The same, and again while a service does not answer: right after an install it may still be connecting. */
async function onceAnswered(...args) {
  for (const end = Date.now() + ANSWER_WAIT_MS; ; await setTimeout(POLL_MS))
    try {
      return tollgate(...args);
    } catch (error) {
      if (Date.now() > end || !String(error.stdout).includes('"unavailable"')) throw error;
    }
}

const tenant = await onceAnswered('tenant', 'create', `helm-test-${Date.now()}`);
await onceAnswered('credit', 'add', tenant.id, '10.00', '--ref', 'helm-test');
const { key } = await onceAnswered('key', 'create', tenant.id, 'helm-test');
say(`made tenant ${tenant.id} with 10.00 of credit`);

/** Both answers end as they should: the text of a stream with its end mark. */
async function chat(stream) {
  const response = await fetch(`${publicUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, stream, max_tokens: 200, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`a chat was answered ${response.status}: ${text}`);
  if (stream && !text.trimEnd().endsWith('data: [DONE]')) throw new Error(`a stream was cut: ${text}`);
  say(`${stream ? 'streamed' : 'plain'} chat: ${text.length} bytes`);
}

/** Repeats until the condition holds. */
async function until(what, waitMs, holds) {
  const end = Date.now() + waitMs;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`${what}: not within ${waitMs / 1_000} s`);
    await setTimeout(POLL_MS);
  }
  say(what);
}

await chat(false);
await chat(true);
await until('both requests are recorded', DEBIT_WAIT_MS, () => tollgate('usage', tenant.id).totals.requests === 2);
await until('the books are proven', RECONCILE_WAIT_MS, () => {
  try {
    tollgate('reconcile');
    return true;
  } catch (error) {
    say(String(error.stdout || error.message));
    return false;
  }
});
