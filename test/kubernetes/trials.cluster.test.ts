import { execFile } from 'node:child_process';
import { resolve } from 'node:path';

const SCRIPT = resolve(__dirname, '../../tools/kubernetes/kubernetes.mjs');
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
/** Only for a trial that hangs. Its steps have limits of their own. */
const TRIAL_TIMEOUT_MS = 900_000;

const TRIALS: [name: string, holds: string][] = [
  ['firstChat', 'the first chats after an install are billed, and helm test passes'],
  ['upgradeUnderLoad', 'an upgrade of every service under load fails no request'],
  ['failedUpgrades', 'upgrades that crash are taken back, and fail no request'],
  ['gatewayScales', 'load makes gateways grow and shrink, and no stream is cut'],
  ['meteringScales', 'a backlog makes metering grow, and is drained'],
  ['podsKilled', 'a killed pod of each service loses and doubles nothing'],
  ['storesDeleted', 'a deleted pod of each store loses and doubles nothing'],
  ['drained', 'a drain waits for the disruption budgets, and fails no request'],
  ['kubeletRestarted', 'a restarted kubelet loses and doubles nothing'],
  ['leavesNothing', 'an uninstall leaves only what the guide names'],
];

/** Runs the script, and resolves to its output, with the reason if it failed. */
const kubernetes = (...args: string[]) =>
  new Promise<string>((done) => {
    const options = { maxBuffer: MAX_OUTPUT_BYTES, timeout: TRIAL_TIMEOUT_MS };
    execFile(process.execPath, [SCRIPT, ...args], options, (error, stdout, stderr) =>
      done(`${stdout}${stderr}${error ? `Exit code ${error.code}` : ''}`),
    );
  });

it('every trial of the script is below', async () => {
  const usage = await kubernetes('help');
  expect(/or all: (.+)/.exec(usage)?.[1]).toBe(TRIALS.map(([name]) => name).join(', '));
});

it('the API server accepts every object of every values file', async () => {
  const checked = await kubernetes('check');
  expect(checked).toMatch(/^dev: \d+ objects are valid\nha: \d+ objects are valid\ningress: \d+ objects are valid\n$/);
});

it.each(TRIALS)(
  '%s: %s',
  async (name) => {
    const output = await kubernetes('prove', name);
    process.stderr.write(output);
    expect(output).toMatch(new RegExp(`\\n${name}: \\{.*\\}\\n$`));
  },
  TRIAL_TIMEOUT_MS,
);
