import { SERVICES } from '@tollgate/contracts';
import { metrics, StartError } from '@tollgate/runtime';
import { eventually } from '@tollgate/testing';
import fs, { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KeysFile } from './keys-file';
import { createMessageKeys, keysFileOf, rotateMessageKeys } from './make-keys';
import { readKeys, readKeysOf } from './message-keys';

const PAIR = { from: 'metering', to: 'billing' } as const;
let folder: string;
const opened: KeysFile[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-keys-'));
});
afterEach(() => {
  jest.restoreAllMocks();
  for (const file of opened.splice(0)) file.close();
  rmSync(folder, { recursive: true });
});
const textOf = (service: (typeof SERVICES)[number]) => readFileSync(keysFileOf(folder, service), 'utf8');
const idsOf = (service: (typeof SERVICES)[number]) =>
  readKeys(textOf(service))
    .filter(({ from, to }) => from === PAIR.from && to === PAIR.to)
    .map(({ id }) => id);
const refused = async () => {
  const { values } = await metrics.getSingleMetric('tollgate_message_keys_reloads_total')!.get();
  return values.find(({ labels }) => labels['result'] === 'refused')?.value ?? 0;
};
function open(service: (typeof SERVICES)[number], path = keysFileOf(folder, service)): KeysFile {
  const file = new KeysFile(path, service);
  opened.push(file);
  return file;
}

test('each service gets only its own keys, no one else may read them, and a repeat changes nothing', () => {
  expect(createMessageKeys(folder)).toMatchObject({
    files: SERVICES.map((each) => keysFileOf(folder, each)),
    pairs: 20,
  });
  const texts = SERVICES.map(textOf);
  for (const service of SERVICES) {
    expect(() => readKeysOf(service, textOf(service))).not.toThrow();
    expect(statSync(keysFileOf(folder, service)).mode & 0o777).toBe(0o600);
  }
  expect(idsOf('metering')).toEqual(idsOf('billing'));
  expect(textOf('auth')).not.toMatch(/metering/);
  expect(createMessageKeys(folder)).toEqual({ files: [], pairs: 0 });
  expect(SERVICES.map(textOf)).toEqual(texts);
});

test('keys for a folder that cannot be created are refused at once', () => {
  expect(() => createMessageKeys('/proc/tollgate/keys')).toThrow();
});

test('a key that is missing in one of two files is copied from the other one', () => {
  createMessageKeys(folder);
  const before = textOf('auth');
  rmSync(keysFileOf(folder, 'auth'));
  expect(createMessageKeys(folder).files).toEqual([keysFileOf(folder, 'auth')]);
  expect(textOf('auth')).toBe(before);
  expect(createMessageKeys(folder)).toEqual({ files: [], pairs: 0 });
});

test('a rotation goes step by step (add, promote, remove), and any other order changes nothing', () => {
  expect(() => rotateMessageKeys(folder, 'add')).toThrow(/there are no message keys .*message-keys create/);
  createMessageKeys(folder);
  const file = keysFileOf(folder, 'billing');
  chmodSync(file, 0o444);
  const { ino } = statSync(file);
  const [first] = idsOf('billing');
  expect(() => rotateMessageKeys(folder, 'promote')).toThrow(/start with "add"/);
  expect(() => rotateMessageKeys(folder, 'remove')).toThrow(/start with "add"/);
  rotateMessageKeys(folder, 'add');
  const [, second] = idsOf('billing');
  expect(idsOf('metering')).toEqual([first, second]);
  expect(() => rotateMessageKeys(folder, 'add')).toThrow(/continue with "promote" or "remove"/);
  rotateMessageKeys(folder, 'promote');
  expect(idsOf('billing')).toEqual([second, first]);
  rotateMessageKeys(folder, 'remove');
  expect([idsOf('metering'), idsOf('billing')]).toEqual([[second], [second]]);
  // The very same file, as containers have it mounted, with its permissions.
  expect(statSync(file)).toMatchObject({ ino });
  expect(statSync(file).mode & 0o777).toBe(0o444);
});

test('files that do not match each other are left unchanged', () => {
  createMessageKeys(folder);
  const file = keysFileOf(folder, 'billing');
  writeFileSync(file, textOf('billing').replace(/^(metering billing \S+) .{8}/m, '$1 00000000'));
  for (const change of [() => createMessageKeys(folder), () => rotateMessageKeys(folder, 'add')])
    expect(change).toThrow(/"metering billing" differ from those of the other service: restore both/);
});

test('a valid change is in force without a restart, at the latest at the first use of a new key', async () => {
  createMessageKeys(folder);
  const keys = open('billing');
  const [first] = idsOf('billing');
  rotateMessageKeys(folder, 'add');
  const [, second] = idsOf('billing');
  await eventually(() => expect(keys.named(PAIR, second!)).toBeDefined());
  expect(keys.signing(PAIR)?.id).toBe(first);
  const before = await refused();
  const good = textOf('billing');
  writeFileSync(keysFileOf(folder, 'billing'), good.slice(0, good.length / 2));
  await eventually(async () => expect(await refused()).toBe(before + 1));
  expect([keys.signing(PAIR)?.id, keys.named(PAIR, second!)?.id]).toEqual([first, second]);
  writeFileSync(keysFileOf(folder, 'billing'), good);
  rotateMessageKeys(folder, 'promote');
  await eventually(() => expect(keys.signing(PAIR)?.id).toBe(second));
});

test('a file stays readable with usable keys at every moment of a rotation, so a start succeeds', () => {
  createMessageKeys(folder, 0o444);
  const file = keysFileOf(folder, 'billing');
  let looks = 0;
  const look = () => {
    looks++;
    expect(statSync(file).mode & 0o444).toBe(0o444);
    expect(() => open('billing')).not.toThrow();
  };
  for (const name of ['chmodSync', 'openSync', 'writeSync', 'writeFileSync', 'ftruncateSync', 'futimesSync'] as const) {
    const real = fs[name] as (...args: unknown[]) => unknown;
    let within = false;
    jest.spyOn(fs, name).mockImplementation(((...args: unknown[]) => {
      const result = real(...args);
      if (within) return result;
      within = true;
      look();
      within = false;
      return result;
    }) as never);
  }
  for (const step of ['add', 'promote', 'remove'] as const) rotateMessageKeys(folder, step);
  expect(looks).toBeGreaterThan(0);
  expect(fs.readdirSync(folder)).toEqual(SERVICES.map((each) => `${each}-message-keys`).sort());
});

test('a disk that has space for only half of a file leaves it unchanged', () => {
  createMessageKeys(folder);
  const before = SERVICES.map(textOf);
  const real = fs.writeSync as (fd: number, bytes: Buffer, offset: number, length: number, at: number) => number;
  jest
    .spyOn(fs, 'writeSync')
    .mockImplementationOnce(((fd: number, bytes: Buffer) => real(fd, bytes, 0, bytes.length >> 1, 0)) as never);
  expect(() => rotateMessageKeys(folder, 'add')).toThrow(/only \d+ of \d+ bytes could be written/);
  expect(SERVICES.map(textOf)).toEqual(before);
});

test('an unreadable change is read again although the file does not change, and is logged once', async () => {
  createMessageKeys(folder);
  const keys = open('billing');
  const before = await refused();
  const file = keysFileOf(folder, 'billing');
  const real = fs.readFileSync;
  let tries = 0;
  rotateMessageKeys(folder, 'add');
  const [, second] = idsOf('billing');
  jest.spyOn(fs, 'readFileSync').mockImplementation(((path: string, ...rest: [BufferEncoding]) => {
    if (path === file && ++tries <= 2) throw Object.assign(new Error('EACCES'), { code: 'EACCES' });
    return real(path, ...rest);
  }) as never);
  await eventually(() => expect(keys.named(PAIR, second!)).toBeDefined());
  expect(tries).toBe(3);
  expect(await refused()).toBe(before + 1);
});

test.each<[string, (file: string) => void, RegExp]>([
  ['none', (file) => rmSync(file), /cannot be read \(there is no such file or directory\)/],
  [
    'a file of another service',
    (file) => writeFileSync(file, textOf('auth')),
    /keys of others \("gateway auth", .*: give billing the file of its own/,
  ],
  [
    'a file that lacks a pair',
    (file) => writeFileSync(file, textOf('billing').replace(/^metering billing .*$/m, '')),
    /it has no key for "metering billing"/,
  ],
  [
    'a file with an invalid line',
    (file) => writeFileSync(file, 'metering billing secret-of-somebody\n'),
    /line 1 must be from, to/,
  ],
  [
    'a file with three keys of a pair',
    (file) => writeFileSync(file, ['1', '2', '3'].map((id) => `metering billing ${id} ${id.repeat(64)}\n`).join('')),
    /line 3: more than 2 keys/,
  ],
])('%s ends the start with one line that says what to do, and shows no key', (_, spoil, line) => {
  createMessageKeys(folder);
  const file = keysFileOf(folder, 'billing');
  spoil(file);
  let error: unknown;
  try {
    open('billing');
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(StartError);
  const { message } = error as Error;
  expect(message).toMatch(line);
  expect(message).toMatch(/^TOLLGATE_MESSAGE_KEYS_FILE: [^\n]*tollgate message-keys create DIR[^\n]*$/);
  expect(message).not.toMatch(/[0-9a-f]{64}|secret-of-somebody/);
});
