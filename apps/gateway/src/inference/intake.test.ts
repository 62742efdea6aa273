import { UnavailableError } from '@tollgate/contracts';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Admitter } from '../admit/admit';
import { BodyMemory } from '../admit/body-memory';
import { RefusedKeys } from '../admit/refused-keys';
import { WastedRequests } from '../admit/wasted-requests';
import type { Principal } from '../authenticate/authenticate';
import type { Catalog } from '../catalog/catalog';
import type { BodyReader } from './body-reader';
import type { Client } from './client';
import { InferenceError, RuinousBodyError } from '../inference-errors';
import { Intake } from './intake';

const PER_MINUTE = 60;
const client = { awaitBody: () => {}, setLimits: () => {} } as unknown as Client;
const principal = { keyId: 'key', models: null, keyLimits: { requestsPerMinute: PER_MINUTE } } as unknown as Principal;

const intakeOf = () =>
  new Intake(
    {} as Admitter,
    { hasFree: () => false } as unknown as Catalog,
    new BodyMemory(),
    new WastedRequests(),
    new RefusedKeys(),
    {} as BodyReader,
  );

function request(): IncomingMessage {
  const headers = { 'content-type': 'application/json', 'content-length': '2' };
  return Object.assign(Readable.from([Buffer.from('{}')]), { headers }) as unknown as IncomingMessage;
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
