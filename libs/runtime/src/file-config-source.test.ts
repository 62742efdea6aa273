import { eventually } from '@tollgate/testing';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DecidedConfig, FileConfigSource, metrics } from './index';

const directory = mkdtempSync(join(tmpdir(), 'config-source-'));
const file = join(directory, 'tollgate.yaml');
afterAll(() => rmSync(directory, { recursive: true }));

const LIMITS = '{ requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 }';
const inCurrency = (currency: string) => `currency: ${currency}
models:
  - id: m
    kind: chat
    contextTokens: 100
    price: { input: "0.15", output: "0.60" }
    backends: [{ url: "https://x/v1", apiKey: "\${KEY}" }]
plans: [{ id: p, limits: ${LIMITS}, profiles: [{ id: d, limits: ${LIMITS} }] }]
`;

const sources: FileConfigSource[] = [];
afterEach(() => {
  for (const source of sources.splice(0)) source.close();
});
function open(decided?: DecidedConfig): FileConfigSource {
  const source = new FileConfigSource(file, { KEY: 's3cret' }, 20, decided);
  sources.push(source);
  return source;
}
/** As it reaches another process. */
const sent = ({ decided }: FileConfigSource) => JSON.parse(JSON.stringify(decided)) as DecidedConfig;

async function refusals(): Promise<number> {
  const { values } = await metrics.getSingleMetric('tollgate_config_reloads_total')!.get();
  return values.find(({ labels }) => labels['result'] === 'refused')?.value ?? 0;
}

describe('a process that begins with the configuration of another one', () => {
  it('has all of it, and begins where the file is one that was refused', async () => {
    writeFileSync(file, inCurrency('EUR'));
    const first = open();
    const before = await refusals();
    writeFileSync(file, 'models: [');
    await eventually(async () => expect(await refusals()).toBe(before + 1));
    const second = open(sent(first));
    expect(JSON.stringify(second.current)).toBe(JSON.stringify(first.current));
    // The refused version is not looked at again.
    await second.refresh();
    expect(await refusals()).toBe(before + 1);
    writeFileSync(file, inCurrency('GBP'));
    await eventually(() => expect([first, second].map(({ current }) => current.currency)).toEqual(['GBP', 'GBP']));
  });

  it('reads a version that the other one has not seen yet, and asks its own checks', async () => {
    writeFileSync(file, inCurrency('EUR'));
    const decided = sent(open());
    // Of another size: two versions within the resolution of the clock have the same time.
    writeFileSync(file, `${inCurrency('GBP')}\n`);
    const second = open(decided);
    second.addCheck(async ({ currency }) => (currency === 'GBP' ? ['no pounds'] : []));
    expect(second.current.currency).toBe('EUR');
    const before = await refusals();
    await second.refresh();
    expect(await refusals()).toBe(before + 1);
    expect(second.current.currency).toBe('EUR');
  });
});
