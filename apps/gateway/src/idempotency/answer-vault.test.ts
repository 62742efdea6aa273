import { randomBytes } from 'node:crypto';
import { AnswerVault } from './answer-vault';
import { AnswerRecorder, decodeAnswer, encodeAnswer } from './kept-answer';

const OLD = 'the-former-secret-of-32-characters';
const NEW = 'the-present-secret-of-32-characters';
const PLAIN = Buffer.from('An answer that nobody else may read. '.repeat(50));
const MAX_BYTES = 1024 * 1024;

describe('the vault of answers', () => {
  it('opens what it sealed, and each sealed text is another', async () => {
    const vault = new AnswerVault([NEW]);
    const [one, two] = await Promise.all([vault.seal(PLAIN, 'a'), vault.seal(PLAIN, 'a')]);
    expect(one).not.toBe(two);
    for (const sealed of [one, two]) {
      expect(await vault.open(sealed, 'a', MAX_BYTES)).toEqual(PLAIN);
      expect(sealed.length).toBeLessThan(PLAIN.length / 4);
    }
  });

  it('opens nothing for another context or another secret, and nothing that was changed or cut', async () => {
    const vault = new AnswerVault([NEW]);
    const sealed = await vault.seal(PLAIN, 'a');
    expect(await vault.open(sealed, 'b', MAX_BYTES)).toBeNull();
    expect(await new AnswerVault([OLD]).open(sealed, 'a', MAX_BYTES)).toBeNull();
    const [name, rest] = sealed.split('.') as [string, string];
    const bytes = Buffer.from(rest, 'base64url');
    for (const at of [0, 11, 12, 27, 28, bytes.length - 1]) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1;
      expect(await vault.open(`${name}.${changed.toString('base64url')}`, 'a', MAX_BYTES)).toBeNull();
    }
    for (const text of ['', name, `${name}.`, `${name}.${rest.slice(0, 30)}`, `${name}.${rest.slice(0, -4)}`])
      expect(await vault.open(text, 'a', MAX_BYTES)).toBeNull();
  });

  it('seals with the secret in force, and opens with a former one until it is removed', async () => {
    const before = await new AnswerVault([OLD]).seal(PLAIN, 'a');
    const mark = await new AnswerVault([OLD]).fingerprint('chat', PLAIN);
    const both = new AnswerVault([NEW, OLD]);
    expect(await both.open(before, 'a', MAX_BYTES)).toEqual(PLAIN);
    expect(await both.matches(mark, 'chat', PLAIN)).toBe(true);
    const after = await both.seal(PLAIN, 'a');
    const alone = new AnswerVault([NEW]);
    expect(await alone.open(after, 'a', MAX_BYTES)).toEqual(PLAIN);
    expect(await alone.open(before, 'a', MAX_BYTES)).toBeNull();
    expect(await alone.matches(mark, 'chat', PLAIN)).toBeNull();
  });

  it('tells bodies and routes apart by their fingerprints, also large ones, and shows nothing of them', async () => {
    const vault = new AnswerVault([NEW]);
    const body = randomBytes(3 * 1024 * 1024 + 1);
    const mark = await vault.fingerprint('chat', body);
    expect(mark).toMatch(/^[\w-]{8}\.[\w-]{43}$/);
    expect(await vault.matches(mark, 'chat', body)).toBe(true);
    expect(await vault.matches(mark, 'completion', body)).toBe(false);
    expect(await vault.matches(`${mark.slice(0, -4)}AAAA`, 'chat', body)).toBe(false);
    body[body.length - 1]! ^= 1;
    expect(await vault.matches(mark, 'chat', body)).toBe(false);
  });

  it('gives up on an answer that is larger than it can be', async () => {
    const vault = new AnswerVault([NEW]);
    const sealed = await vault.seal(Buffer.alloc(MAX_BYTES), 'a');
    expect(await vault.open(sealed, 'a', MAX_BYTES - 1)).toBeNull();
  });
});

describe('a kept answer', () => {
  it('is read as it was written, whatever bytes it has', () => {
    const body = Buffer.from('data: 1\n\n\xff\n', 'latin1');
    const answer = { model: 'org/model', isStream: true, requestId: 'req_1', body };
    expect(decodeAnswer(encodeAnswer(answer))).toEqual(answer);
    const former = Buffer.concat([Buffer.from('{"model":"org/model","isStream":true}\n'), body]);
    expect(decodeAnswer(former)).toEqual({ ...answer, requestId: null });
  });

  it('has what a stream sent, without comments, up to its bound', () => {
    const recorder = new AnswerRecorder(20, () => true);
    for (const part of ['data: 1\n\n', ': keep-alive\n\n', 'data: \xe9\n\n']) recorder.add(part);
    expect(recorder.withEnd('\n')!.toString('latin1')).toBe('data: 1\n\ndata: \xe9\n\n\n');
    expect(recorder.withEnd('too long')).toBeNull();
    recorder.add('x'.repeat(20));
    expect(recorder.withEnd('')).toBeNull();
  });

  it('reserves memory in steps for what a stream sends, and is given up if there is none', () => {
    const reserved: number[] = [];
    const recorder = new AnswerRecorder(100_000, (bytes) => reserved.push(bytes) < 3);
    for (let part = 0; part < 32; part++) recorder.add('x'.repeat(1_024));
    expect(recorder.withEnd('')).toHaveLength(32 * 1_024);
    recorder.add('x');
    expect(reserved).toEqual([16 * 1_024, 32 * 1_024, 48 * 1_024]);
    expect(recorder.withEnd('')).toBeNull();
  });
});
