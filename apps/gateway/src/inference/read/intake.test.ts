import { UnavailableError } from '@tollgate/contracts';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Admitter } from '../../admit/admit';
import { BodyMemory } from '../../admit/body-memory';
import { RefusedKeys } from '../../admit/refused-keys';
import { WastedRequests } from '../../admit/wasted-requests';
import type { Principal } from '../../authenticate/authenticate';
import type { Catalog } from '../../catalog/catalog';
import type { InferenceRequest } from '../../body/inference-request';
import type { BodyReader } from './body-reader';
import type { Client } from '../client/client';
import { InferenceError, RuinousBodyError } from '../../inference-errors';
import { Intake } from './intake';

const PER_MINUTE = 60;
/** Called when the clients have read their answers. */
let closed: (() => void)[] = [];
const client = {
  awaitBody: () => {},
  setLimits: () => {},
  afterLastByte: (listener: () => void) => closed.push(listener),
} as unknown as Client;
const principalOf = (keyId: string, tenantId = 'tenant') =>
  ({ keyId, tenantId, models: null, keyLimits: { requestsPerMinute: PER_MINUTE } }) as unknown as Principal;
const principal = principalOf('key');

const intakeOf = (memory = new BodyMemory()) =>
  new Intake(
    { look: () => Promise.resolve({ kind: 'clear' }) } as unknown as Admitter,
    { hasFree: () => false } as unknown as Catalog,
    memory,
    new WastedRequests(),
    new RefusedKeys(),
    {} as BodyReader,
  );

function request(body = Buffer.from('{}')): IncomingMessage {
  const headers = { 'content-type': 'application/json', 'content-length': String(body.length) };
  return Object.assign(Readable.from([body]), { headers }) as unknown as IncomingMessage;
}

// The limit of wasted requests refills with the time.
beforeAll(() => void jest.spyOn(Date, 'now').mockReturnValue(Date.parse('2026-11-23T12:00:00Z')));
afterAll(() => jest.restoreAllMocks());

describe('a failed body', () => {
  const waste = async (intake: Intake, error: Error) => {
    const body = await intake.take(request(), client, principal);
    body.release();
    body.wasted(error);
  };

  it('that cost a worker counts as an invalid request', async () => {
    const intake = intakeOf();
    for (let i = 0; i < PER_MINUTE; i++) await waste(intake, new RuinousBodyError('took too long'));
    expect(() => intake.refuseAfterWaste(principal)).toThrow(InferenceError);
    expect(() => intake.refuseAfterWaste(principal)).toThrow(
      expect.objectContaining({ code: 'requests_limit_exceeded' }),
    );
  });

  it('that failed by our own fault is not counted against its key', async () => {
    const intake = intakeOf();
    for (let i = 0; i <= 2 * PER_MINUTE; i++) await waste(intake, new UnavailableError('no worker was free'));
    expect(() => intake.refuseAfterWaste(principal)).not.toThrow();
  });
});

describe('a large body', () => {
  const KIB = 1024;
  const body = Buffer.alloc(80 * KIB, ' ');
  const memory = () => new BodyMemory({ maxBytes: 800 * KIB, maxBytesPerKey: 100 * KIB });
  /** A request that keeps two fields. */
  const read = {
    outgoing: { fields: Buffer.alloc(5 * KIB), extras: [{ name: 'top_k', json: '1' }] },
  } as unknown as InferenceRequest;

  it('counts against the memory of its key only with what is kept of it', async () => {
    const intake = intakeOf(memory());
    const first = await intake.take(request(body), client, principal);
    await expect(intake.take(request(body), client, principal)).rejects.toMatchObject({
      code: 'concurrency_limit_exceeded',
      by: { what: 'body_memory', scope: 'key' },
    });
    first.becomes(read);
    await intake.take(request(body), client, principal);
  });

  it('counts against the memory of its tenant, and the bodies of another tenant are read', async () => {
    const intake = intakeOf(memory());
    for (const key of ['a', 'b']) await intake.take(request(body), client, principalOf(key));
    const refusal = intake.take(request(body), client, principalOf('c'));
    await expect(refusal).rejects.toMatchObject({
      code: 'concurrency_limit_exceeded',
      by: { what: 'body_memory', scope: 'tenant' },
    });
    await expect(refusal).rejects.toThrow('The request bodies of this account exceed 0 MiB in total.');
    await intake.take(request(body), client, principalOf('d', 'other'));
  });
});

describe('a repeat', () => {
  const KIB = 1024;
  const full = { code: 'concurrency_limit_exceeded', by: { what: 'body_memory', scope: 'key' } };
  const small = () => intakeOf(new BodyMemory({ maxBytes: 800 * KIB, maxBytesPerKey: 100 * KIB }));
  const take = (intake: Intake) => intake.take(request(), client, principal, true);
  const refusalOf = (hold: () => void): InferenceError => {
    try {
      hold();
    } catch (error) {
      return error as InferenceError;
    }
    throw new Error('not refused');
  };

  it('counts against the memory of its key with its kept answer, until it is released', async () => {
    const intake = small();
    const [first, second, third] = [await take(intake), await take(intake), await take(intake)];
    // The largest takes half of the memory, and the bodies a little.
    first.holdAnswer(60 * KIB);
    const refusal = refusalOf(() => second.holdAnswer(60 * KIB));
    expect(refusal).toMatchObject(full);
    expect(refusal.message).toContain('The request bodies and repeated answers of this key exceed 0 MiB in total.');
    third.holdAnswer(40 * KIB);
    third.release();
    first.release();
    second.holdAnswer(60 * KIB);
    second.release();
    (await take(intake)).holdAnswer(60 * KIB);
  });

  it('counts with its answer until its client has read it', async () => {
    const intake = small();
    const [first, second] = [await take(intake), await take(intake)];
    closed = [];
    first.holdAnswer(5 * KIB);
    // The answer is larger than what the store keeps of it.
    first.holdAnswer(60 * KIB);
    first.repeated();
    first.release();
    expect(refusalOf(() => second.holdAnswer(60 * KIB))).toMatchObject(full);
    for (const listener of closed) listener();
    second.holdAnswer(60 * KIB);
  });

  it('counts as wasted if it is refused for that, and not as refused by a limit', async () => {
    const intake = small();
    const first = await take(intake);
    first.holdAnswer(60 * KIB);
    for (let i = 0; i < PER_MINUTE; i++) {
      expect(() => intake.refuseAfterWaste(principal)).not.toThrow();
      const body = await take(intake);
      body.wasted(refusalOf(() => body.holdAnswer(60 * KIB)));
      body.release();
    }
    expect(() => intake.refuseAfterWaste(principal)).toThrow(InferenceError);
  });

  it('counts as wasted and leaves no memory reserved if its body cannot be read', async () => {
    const intake = small();
    const wrongType = Object.assign(request(), { headers: { 'content-type': 'text/plain' } });
    await expect(intake.take(wrongType, client, principal, true)).rejects.toMatchObject({ status: 415 });
    for (let i = 1; i < PER_MINUTE; i++) (await take(intake)).repeated();
    expect(() => intake.refuseAfterWaste(principal)).toThrow(InferenceError);
  });
});

describe('answers that were not read', () => {
  it('refuse new requests of their key and tenant until they are read or dropped', async () => {
    const bodies = new BodyMemory({ answers: { perKey: 10, perTenant: 20, all: 40 } });
    const intake = intakeOf(bodies);
    bodies.answers.add(principal, 11);
    const refusal = intake.take(request(), client, principal);
    await expect(refusal).rejects.toMatchObject({
      code: 'concurrency_limit_exceeded',
      by: { what: 'body_memory', scope: 'key' },
    });
    await expect(refusal).rejects.toThrow('The unread answers of this key exceed 0 MiB in total.');
    (await intake.take(request(), client, principalOf('another'))).release();
    bodies.answers.add(principal, 10);
    await expect(intake.take(request(), client, principalOf('another'))).rejects.toMatchObject({
      by: { scope: 'tenant' },
    });
    (await intake.take(request(), client, principalOf('a', 'other'))).release();
    bodies.answers.add(principal, -21);
    (await intake.take(request(), client, principal)).release();
  });
});

describe('the recording of a stream', () => {
  const MIB = 1024 * 1024;
  beforeEach(() => void (closed = []));

  it('has memory up to the limits, until its client has read the answer', async () => {
    const intake = intakeOf(new BodyMemory({ recorded: { perKey: 2 * MIB, perTenant: 3 * MIB, all: 8 * MIB } }));
    const take = (keyId: string) => intake.take(request(), client, principalOf(keyId));
    const [first, second, third] = [await take('a'), await take('a'), await take('b')];
    expect([first.recordAnswer(MIB), first.recordAnswer(2 * MIB), second.recordAnswer(1)]).toEqual([true, true, false]);
    expect([third.recordAnswer(MIB), third.recordAnswer(2 * MIB)]).toEqual([true, false]);
    first.release();
    expect(second.recordAnswer(1)).toBe(false);
    closed[0]!();
    expect([second.recordAnswer(2 * MIB), third.recordAnswer(2 * MIB)]).toEqual([true, false]);
  });
});
