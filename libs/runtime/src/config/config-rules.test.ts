import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '@tollgate/testing';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { BackendConfig, BackendHealthConfig, BackendTimeoutsConfig, BackendTlsConfig } from './backend-config';
import { ConfigError, type ConfigProblem, readConfigFile } from './read-config';
import { namesOf, type SettingsClass } from '../settings/read-settings';
import {
  BudgetsConfig,
  LimitsConfig,
  ModelConfig,
  PlanConfig,
  PriceConfig,
  ProfileConfig,
  QueueConfig,
  TollgateConfig,
  UsageBandConfig,
} from './tollgate-config';

const directory = mkdtempSync(join(tmpdir(), 'rules-'));
const file = join(directory, 'tollgate.yaml');
afterAll(() => rmSync(directory, { recursive: true }));

interface Mapping {
  [name: string]: Node;
}
type Node = Mapping | Node[] | string | number | boolean | null;
type Path = (string | number)[];

const limits = { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 };
const COUNTED = { maxTokensPerImage: 1, maxTokensPerAudio: 1, maxTokensPerVideo: 1, maxTokensPerFile: 1 };
/** Every field that a file may have, in its first model and plan. */
const WHOLE: Mapping = {
  currency: 'USD',
  models: [
    {
      ...{ id: 'm', aliases: ['n'], kind: 'chat', ownedBy: 'us', contextTokens: 100, maxOutputTokens: 50 },
      ...{ clamp: true, tools: true, jsonSchema: true, routing: 'load', tokenizer: 'o200k_base' },
      ...{ templateTokensPerMessage: 3, templateTokens: 3, passthrough: ['min_p2'], mediaUrls: true },
      ...{ vocabularyTokens: 9, dimensions: 9 },
      ...COUNTED,
      usageBand: { min: 0.5, max: 2 },
      price: { input: '1', cachedInput: '1', output: '1', request: '0' },
      queue: { maxRequests: 1, maxWaitMs: 1 },
      fallback: ['m2'],
      backends: [
        {
          ...{ url: 'https://x/v1', model: 'm', apiKey: '${KEY}', weight: 1, maxConcurrency: 1, dialect: 'vllm' },
          timeouts: { connectMs: 10, firstByteMs: 10, idleMs: 10, totalMs: 10 },
          health: { path: '/health', intervalMs: 100 },
          tls: { ca: '${CERT}', certificate: '${CERT}', key: '${CERT_KEY}', serverName: 'x' },
          headers: { 'x-team': '${KEY}' },
          metrics: 'https://x/metrics',
        },
      ],
    },
    {
      ...COUNTED,
      id: 'm2',
      kind: 'chat',
      contextTokens: 1,
      price: { input: '1', output: '1' },
      backends: [{ url: 'simulator:' }],
    },
  ],
  plans: [
    {
      ...{ id: 'p', limits, monthlyBudgetCents: 1, idempotency: true },
      profiles: [{ id: 'd', models: ['*'], limits, monthlyBudgetCents: 1, idempotency: true, usageCost: true }],
    },
  ],
  budgets: { thresholdsPercent: [50] },
};
const CLASSES: [SettingsClass, Path][] = [
  [TollgateConfig, []],
  [ModelConfig, ['models', 0]],
  [UsageBandConfig, ['models', 0, 'usageBand']],
  [PriceConfig, ['models', 0, 'price']],
  [QueueConfig, ['models', 0, 'queue']],
  [BackendConfig, ['models', 0, 'backends', 0]],
  [BackendTimeoutsConfig, ['models', 0, 'backends', 0, 'timeouts']],
  [BackendHealthConfig, ['models', 0, 'backends', 0, 'health']],
  [BackendTlsConfig, ['models', 0, 'backends', 0, 'tls']],
  [PlanConfig, ['plans', 0]],
  [LimitsConfig, ['plans', 0, 'limits']],
  [ProfileConfig, ['plans', 0, 'profiles', 0]],
  [BudgetsConfig, ['budgets']],
];
const OPTIONAL = new Set(
  (
    'cachedInput maxOutputTokens vocabularyTokens maxTokensPerImage maxTokensPerAudio maxTokensPerVideo ' +
    'maxTokensPerFile dimensions passthrough ' +
    'monthlyBudgetCents idempotency usageCost model apiKey maxConcurrency timeouts health tls headers dialect ' +
    'metrics connectMs firstByteMs idleMs totalMs ca certificate key serverName'
  ).split(' '),
);
const REQUIRED = new Set(
  (
    'models plans id kind contextTokens price backends input output limits profiles url path ' +
    'requestsPerMinute tokensPerMinute concurrency'
  ).split(' '),
);

const nodeAt = (root: Node, path: Path): Node => path.reduce((node, part) => (node as Mapping)[part]!, root);
const textOf = (path: Path): string =>
  path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('');

/** The problems of the whole file in which these places have another value; undefined: they are absent. */
function problemsWith(paths: Path[], value: Node | undefined): ConfigProblem[] {
  const changed = structuredClone(WHOLE);
  for (const path of paths) {
    const [above, name] = [nodeAt(changed, path.slice(0, -1)) as Mapping, path.at(-1)!];
    if (value === undefined) delete above[name];
    else above[name] = value;
  }
  writeFileSync(file, stringify(changed, { aliasDuplicateObjects: false }));
  try {
    readConfigFile(file, { KEY: 'secret', CERT: LOCALHOST_CERTIFICATE, CERT_KEY: LOCALHOST_KEY });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** The paths of every field and every item of a list. */
function placesIn(node: Node, path: Path = []): Path[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([name, below]: [string, Node]) => {
    const place = [...path, Array.isArray(node) ? Number(name) : name];
    return [place, ...placesIn(below, place)];
  });
}

const PLACES = placesIn(WHOLE).filter(([, index]) => index !== 1);
/** By default a profile has all models. */
const ALL_MODELS = '.plans[0].profiles[0].models';
/** Neither an index nor the name of a header. */
const FIELD = /^[a-zA-Z]+$/;
const isLeaf = (path: Path): boolean => typeof nodeAt(WHOLE, path) !== 'object';
/** All values that are neither lists nor mappings at once, to read fewer files; the others by themselves. */
const CHANGES: Path[][] = [PLACES.filter(isLeaf), ...PLACES.filter((path) => !isLeaf(path)).map((path) => [path])];

/** What may be said of a wrong value: our own words, without the name of the field. */
const WORDS = /^must be (an? |one of |true|false, or|at |the |"simulator:"|a reference)/;
const MISSING = /^is missing: it must be (an? |one of |true|false, or|the |"simulator:")/;
/** Texts without a form of their own. */
const FREE_TEXT = /\.(ownedBy|model)$|\.(fallback|models)\[0\]$/;
/** What is said of a right value that does not fit to others. */
const OTHERS = [
  /^there is no model "/,
  /^there is no such field$/,
  /^must have "certificate" and "key" together$/,
  /^"" must not be given twice$/,
  /^"\w+" must have the same/,
  /^backends\[0\] is of a dialect/,
  /^is only for a URL/,
  /^must not be more than contextTokens$/,
];

describe('the rules of tollgate.yaml', () => {
  it('are tested for every field', () => {
    for (const [type, path] of CLASSES)
      expect([path, Object.keys(nodeAt(WHOLE, path) as Mapping).sort()]).toEqual([path, [...namesOf(type)].sort()]);
    // No dialect takes both videos and files.
    expect(problemsWith([['currency']], 'EUR')).toMatchObject([{ path: 'models[0].maxTokensPerFile' }]);
  });

  it.each([undefined, null])('say of every absent field that it is missing, and what it must be (%s)', (absent) => {
    for (const places of CHANGES.map((paths) => paths.filter((path) => FIELD.test(String(path.at(-1)))))) {
      const found = problemsWith(places, absent).filter(({ message }) => !OTHERS.some((form) => form.test(message)));
      for (const { message } of found) expect(message).toMatch(MISSING);
      // A field with a default must have a value if it is named.
      const wanted = places.filter((path) => {
        const name = path.at(-1) as string;
        return absent === undefined ? REQUIRED.has(name) && textOf(path) !== ALL_MODELS : !OPTIONAL.has(name);
      });
      expect(found.map(({ path }) => `.${path}`).sort()).toEqual(wanted.map(textOf).sort());
    }
  });

  it.each([[-1.5], ['a b\n'], [true], [[]], [[null]], [{ colour: 'red' }], [['', '']]] as Node[][])(
    'say of the wrong value %j what it must be, once, and in our own words',
    (value) => {
      for (const places of CHANGES) {
        const found = problemsWith(places, value);
        expect(new Set(found.map(({ path }) => path)).size).toBe(found.length);
        for (const { path, message } of found) {
          const ours = [WORDS, MISSING, ...OTHERS].some((form) => form.test(message));
          expect([path, message, ours]).toEqual([path, message, true]);
        }
      }
      const [leaves] = CHANGES as [Path[]];
      const refused = new Set(problemsWith(leaves, value).map(({ path }) => `.${path}`));
      const free = value === true ? /\.(clamp|tools|jsonSchema|idempotency|usageCost|mediaUrls)$/ : FREE_TEXT;
      expect(
        leaves
          .map(textOf)
          .filter((path) => ![path, path.replace(/\[0\]$/, '')].some((one) => refused.has(one)) && !free.test(path)),
      ).toEqual([]);
    },
  );

  it.each([
    [['models', 0, 'contextTokens'], undefined, 'is missing: it must be a whole number from 1 to 100,000,000'],
    [['models', 0, 'queue', 'maxRequests'], 'x', 'must be a whole number from 0 to 100,000'],
    [['models', 0, 'price'], undefined, 'is missing: it must be a mapping with input and output'],
    [['models', 0, 'price'], [], 'must be a mapping with input and output'],
    [['models', 0, 'backends'], [], 'must be a list of at least one backend'],
    [['models', 0], null, 'is missing: it must be a mapping'],
    [['models', 0], 'm', 'must be a mapping'],
    [['models', 0, 'kind'], 'video', 'must be one of chat, embedding'],
  ] as [Path, Node | undefined, string][])('say it of %j with %j', (path, value, message) => {
    const [{ path: place, message: said }] = problemsWith([path], value) as [ConfigProblem];
    expect([`.${place}`, said]).toEqual([textOf(path), message]);
  });
});
