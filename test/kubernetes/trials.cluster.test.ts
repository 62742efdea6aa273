import { spawn, type ChildProcess } from 'node:child_process';
import { resolve } from 'node:path';

const SCRIPT = resolve(__dirname, '../../tools/kubernetes/kubernetes.mjs');
/** Only for a trial that hangs. Its steps have limits of their own. */
const TRIAL_TIMEOUT_MS = 900_000;

const TRIALS: [name: string, holds: string][] = [
  ['firstChat', 'the first chats after an install are billed, and helm test passes'],
  ['upgradeUnderLoad', 'an upgrade of every service under load fails no request'],
  ['failedUpgrades', 'upgrades that crash or are refused are taken back, and fail no request'],
  ['gatewayScales', 'load makes gateways grow and shrink, and no stream is cut'],
  ['meteringScales', 'a backlog makes metering grow, and is drained'],
  ['podsKilled', 'a killed pod of each service loses, doubles and overdraws nothing'],
  ['storesDeleted', 'a deleted pod of each store loses, doubles and overdraws nothing'],
  ['drained', 'a drain waits for the disruption budgets, and fails no request'],
  ['kubeletRestarted', 'a restarted kubelet loses, doubles and overdraws nothing'],
  ['leavesNothing', 'an uninstall leaves only what the guide names'],
];

let running: ChildProcess | undefined;
/** The trial that failed. The release may be between two states then, so the next trials would say nothing. */
let failed: string | undefined;

/** Runs the script, which writes its errors to ours. Rejects if it fails. */
function kubernetes(...args: string[]): Promise<string> {
  // A group of its own, so that helm and kubectl can be ended with it.
  const child = spawn(process.execPath, [SCRIPT, ...args], { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  running = child;
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('close', (code) => {
      running = undefined;
      if (code === 0) done(output);
      else fail(new Error(`${args.join(' ')} ended with ${code}:\n${output}${errors}`));
    });
  });
}

afterEach(() => {
  // After the limit of a test.
  if (running?.pid !== undefined) process.kill(-running.pid, 'SIGKILL');
});

it('every trial of the script is below', async () => {
  const usage = await kubernetes('help').catch(String);
  expect(/or all: (.+)/.exec(usage)?.[1]).toBe(TRIALS.map(([name]) => name).join(', '));
});

it('the API server accepts every object of every values file', async () => {
  const checked = await kubernetes('check');
  expect(checked).toMatch(/^dev: \d+ objects are valid\nha: \d+ objects are valid\ningress: \d+ objects are valid\n$/);
});

it.each(TRIALS)(
  '%s: %s',
  async (name) => {
    if (failed !== undefined) throw new Error(`not tried, because ${failed} has failed`);
    failed = name;
    const output = await kubernetes('prove', name);
    process.stderr.write(output);
    expect(output).toMatch(new RegExp(`\\n${name}: \\{.*\\}\\n$`));
    failed = undefined;
  },
  TRIAL_TIMEOUT_MS,
);
