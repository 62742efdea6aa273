import { execFileSync, spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const BENCH = join(resolve(__dirname, '../..'), 'tools/bench');

/** What an expression over the exports of modules of the bench is. ES modules, so asked in a process of its own. */
function ask<T>(imports: Record<string, string>, expression: string): T {
  const lines = Object.entries(imports).map(
    ([path, names]) => `import { ${names} } from '${pathToFileURL(join(BENCH, path)).href}';`,
  );
  const script = `${lines.join('\n')}\nconsole.log(JSON.stringify(await (${expression})));`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  return JSON.parse(printed.trim().split('\n').at(-1)!) as T;
}

describe('npm run bench', () => {
  const bench = (...args: string[]) =>
    spawnSync(process.execPath, [join(BENCH, 'bench.mjs'), ...args], { encoding: 'utf8', env: { PATH: '' } });

  it('says how it is called', () => {
    const { status, stdout } = bench('--help');
    expect(stdout).toContain('--form standalone|distributed|both');
    expect(status).toBe(0);
  });

  it.each([
    [['--form', 'all'], '--form all must be one of standalone, distributed, both'],
    [['--rounds', '0'], '--rounds 0 must be a whole number from 1 to 100'],
    [['--soak', 'long'], '--soak long must be a time such as 10m or 90s'],
    [['--growth', 'much'], '--growth much must be a whole number from 1 to 100000000'],
    [['--books', '0'], '--books 0 must be a whole number from 1 to 100000000'],
    [['--peer', 'localhost'], '--peer localhost must be the base URL of a gateway, a comma and a key'],
    [['--profile', 'kafka'], '--profile kafka must be one of standalone, gateway, metering, billing, auth'],
  ])('refuses %j before it starts anything', (args, line) => {
    const { status, stderr } = bench(...args);
    expect(stderr.split('\n')[0]).toBe(line);
    expect(status).toBe(1);
  });

  it('says in one line that the distributed form needs Docker', () => {
    const { status, stderr } = bench('--form', 'distributed');
    expect(stderr).toMatch(/^Docker is not installed: .*`npm run bench -- --form standalone` needs no Docker\.$/m);
    expect(status).toBe(1);
  });
});

it('the load reads the answers of the backend to their end', () => {
  const { plain, streamed } = ask<Record<'plain' | 'streamed', Record<string, number>>>(
    {
      'load/generate.mjs': 'load, startBackend',
      'load/scenarios.mjs': 'PLAIN',
      'machine/take-down.mjs': 'takeDown',
    },
    `(async () => {
      const backend = await startBackend();
      const url = backend.url + '/chat/completions';
      const run = (body) => load({ url, body: { ...PLAIN, ...body }, connections: 2, seconds: 0.2 });
      const runs = { plain: await run({}), streamed: await run({ stream: true }) };
      await takeDown();
      return runs;
    })()`,
  );
  expect([plain.errors, plain.chunks, streamed.errors]).toEqual([0, 0, 0]);
  // The role, 100 tokens, the reason why it ended, and the end.
  expect(streamed.chunks).toBe(streamed.requests! * 103);
});

describe('the table of bars', () => {
  type Verdict = { name: string; value: number | null; verdict: string };
  /** All runs of a form cost the same, but for the gateway's CPU a request. */
  const judged = (form: 'standalone' | 'distributed', micros: number): Verdict[] =>
    ask(
      { 'report/bars.mjs': 'judge', 'report/summary.mjs': 'summaryOf', 'load/scenarios.mjs': 'SCENARIOS' },
      `(() => {
        const measured = '${form}' === 'standalone' ? 'standalone' : 'gateway';
        const run = (cpuMicros) => ({
          perSecond: 5_000, chunksPerSecond: 50_000, errors: 0, latencyMs: { p50: 1, p99: 2 }, firstTokenMs: { p50: 1 },
          coreShares: { measured: 1, rest: 1 }, cpuMicros: { ...cpuMicros, backend: 9, load: 9 },
        });
        const gateways = {
          direct: [run({})],
          'bare proxy': [run({ gateway: 50 }), run({ gateway: 60 }), run({ gateway: 1_000 })],
          ${form}: [run({ [measured]: ${micros}, PostgreSQL: 70, Kafka: 80 })],
        };
        const runs = Object.fromEntries(Object.keys(SCENARIOS).map((name) => [name, gateways]));
        const store = { transactions: 3, 'WAL fsyncs': 1 };
        return judge(summaryOf({
          form: { name: '${form}', measured }, runs, ingestRatio: 0.5, store: { plain1: store, plain32: store },
          halfLoad: { addedP99Ms: 1, debitLagMs: { p99: 900 } },
          memory: { afterLoadBytes: 1e8, postgresBytes: 1e8, perStream: { rssKib: 1, liveKib: 50 } },
        }));
      })()`,
    );

  it.each(['standalone', 'distributed'] as const)('finds every figure of the %s form', (form) => {
    expect(judged(form, 90).filter(({ value }) => value === null)).toEqual([]);
  });

  it('compares medians with those of the bare proxy in the same rounds', () => {
    const verdict = (micros: number) =>
      judged('distributed', micros).find(({ name }) => name.endsWith('128 connections'));
    expect(verdict(180)).toMatchObject({ value: 3, verdict: 'not met' });
    expect(verdict(120)).toMatchObject({ value: 2, verdict: 'met' });
    expect(verdict(60)).toMatchObject({ value: 1, verdict: 'met, stretch too' });
  });

  it('adds up what all other parts cost, without the load and the backend', () => {
    const others = judged('distributed', 90).find(({ name }) => name.startsWith('all others'));
    expect(others).toMatchObject({ value: 150, verdict: 'met' });
  });
});

it('a measurement counts the answers between two moments of a load', () => {
  const counts = ask<number[]>(
    { 'measure/database.mjs': 'between' },
    '[between([10, 20, 30], 0, 300), between([10, 20, 30], 50, 250), between([10, 20, 30], 100, 900)]',
  );
  expect(counts).toEqual([60, 40, 50]);
});

it('a breakdown adds up the self times of a profile in the time of the load', () => {
  const frame = (functionName: string, url = '', lineNumber = -1) => ({ functionName, url, lineNumber });
  const nodes = [
    { id: 1, callFrame: frame('start') },
    { id: 2, callFrame: frame('(idle)') },
    { id: 3, callFrame: frame('parse', pathToFileURL(join(BENCH, 'load/load.mjs')).href, 6) },
    { id: 4, callFrame: frame('', 'node:net', 9) },
  ];
  const profile = { nodes, startTime: 1_000, samples: [1, 3, 2, 3, 4, 3], timeDeltas: [0, 100, 40, 50, 20, 30] };
  const times = ask(
    { 'profile/self-times.mjs': 'selfTimes' },
    `selfTimes(${JSON.stringify(profile)}, { fromMicros: 1_050, toMicros: 1_220 })`,
  );
  expect(times).toEqual([
    { name: 'parse', at: 'tools/bench/load/load.mjs:7', micros: 60 },
    { name: '(anonymous)', at: 'node:net:10', micros: 30 },
  ]);
});

it('a breakdown adds up self times by package, stage and library', () => {
  const at = (path: string, micros: number) => ({ name: 'run', at: `${path}:1`, micros });
  const times = [
    at('apps/gateway/dist/settle/emitter.js', 5),
    at('apps/gateway/dist/settle/settlement.js', 6),
    at('libs/admission/dist/index.js', 7),
    at('kafkajs/src/network/connection.js', 8),
    at('@nestjs/core/router.js', 9),
    at('node:internal/timers', 4),
    { name: '(garbage collector)', at: '', micros: 3 },
    { name: 'writev', at: '', micros: 2 },
  ];
  const sums = ask<{ name: string; micros: number }[]>(
    { 'profile/self-times.mjs': 'byOrigin' },
    `byOrigin(${JSON.stringify(times)})`,
  );
  expect(sums.map(({ name, micros }) => [name, micros])).toEqual([
    ['apps/gateway/settle', 11],
    ['@nestjs/core', 9],
    ['kafkajs', 8],
    ['libs/admission', 7],
    ['node', 4],
    ['(garbage collector)', 3],
    ['native code', 2],
  ]);
});
