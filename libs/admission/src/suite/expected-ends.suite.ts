import { newId } from '@tollgate/contracts';
import type { AdmissionStore, AdmitRequest } from '../admission-store';
import { TOKEN_NANOS, useFixture, type Fixture, type OpenStore } from './store.fixture';

const MAX_MODELS = 16;
const MAX_RUNNING = 512;
/** More than a store reads. */
const MANY_SETTLED = 2_560;

/** When running requests are expected to end: the mean length of each model, and the age of each hold. */
export function expectedEndsSuite(open: OpenStore): void {
  const fixture = useFixture(open);

  const of = (f: Fixture, model: string, more: Parameters<Fixture['request']>[0] = {}): AdmitRequest => {
    const request = f.request({ outputFemtosPerToken: 0n, ...more });
    return { ...request, draft: { ...request.draft, model } };
  };
  const begin = async (f: Fixture, model: string, more: Parameters<Fixture['request']>[0] = {}) => {
    const request = of(f, model, more);
    expect(await f.admit(request)).toMatchObject({ kind: 'held' });
    return request.draft.id;
  };
  const known = async (f: Fixture, model: string, lengthMs: number) => {
    const id = await begin(f, model);
    f.nowMs += lengthMs;
    await f.settle(id, 0n, { model });
  };
  const ends = async (f: Fixture, store: AdmissionStore = f.store) => {
    const [answer] = await store.expectedEnds([f.tenantId]);
    if (answer instanceof Error) throw answer;
    return Object.fromEntries(answer!.map(({ keyId, endsInMs }) => [keyId, endsInMs]));
  };

  it('tells a process that ran nothing itself the soonest end of each key, by model and age', async () => {
    const f = fixture();
    await known(f, 'quick', 5_000);
    await known(f, 'slow', 40_000);
    const other = newId('key');
    await begin(f, 'slow');
    await begin(f, 'quick', { keyId: other });
    f.nowMs += 2_000;
    await begin(f, 'quick');
    f.nowMs += 1_000;
    const stranger = await f.open();
    expect(await ends(f, stranger)).toEqual({ [f.keyId]: 4_000, [other]: 2_000 });
    // Several that began together do not end sooner.
    for (let n = 0; n < 3; n++) await begin(f, 'quick', { keyId: other });
    expect(await ends(f, stranger)).toEqual({ [f.keyId]: 4_000, [other]: 2_000 });
  });

  it('says nothing while nothing runs, and nothing of a model of which no hold has ended', async () => {
    const f = fixture();
    expect(await f.store.expectedEnds([])).toEqual([]);
    expect(await ends(f)).toEqual({});
    await begin(f, 'new');
    expect(await ends(f)).toEqual({});
    await known(f, 'quick', 5_000);
    expect(await ends(f)).toEqual({});
    await begin(f, 'quick');
    expect(await ends(f)).toEqual({ [f.keyId]: 5_000 });
  });

  it('answers several tenants in their order, one of them twice', async () => {
    const f = fixture();
    const lengths = [3_000, 7_000];
    const tenants = [newId('ten'), newId('ten')];
    for (const [i, tenantId] of tenants.entries()) {
      const id = await begin(f, 'm', { tenantId });
      f.nowMs += lengths[i]!;
      await f.settle(id, 0n, { model: 'm', tenantId });
      await begin(f, 'm', { tenantId });
    }
    const [first, second] = tenants as [string, string];
    const answers = (await f.store.expectedEnds([second, newId('ten'), first, second])).map((answer) => {
      if (answer instanceof Error) throw answer;
      return answer.map(({ endsInMs }) => endsInMs);
    });
    expect(answers).toEqual([[7_000], [], [Math.abs(3_000 - 7_000)], [7_000]]);
  });

  it('expects an overdue request after as much time again as it is overdue', async () => {
    const f = fixture();
    await known(f, 'm', 4_000);
    await begin(f, 'm');
    const said: number[] = [];
    for (const ms of [4_000, 1_500, 4_000]) {
      f.nowMs += ms;
      said.push((await ends(f))[f.keyId]!);
    }
    expect(said).toEqual([0, 1_500, 5_500]);
  });

  it('weighs later holds of a model by an eighth, those of one call as one, whatever ends them', async () => {
    const f = fixture();
    await f.setBalance(100n * TOKEN_NANOS);
    await known(f, 'm', 8_000);
    await known(f, 'other', 60_000);
    const together = [await begin(f, 'm'), await begin(f, 'm'), await begin(f, 'other')];
    f.nowMs += 16_000;
    await f.store.void(together.map((id) => ({ id, tenantId: f.tenantId })));
    await begin(f, 'm');
    expect(await ends(f)).toEqual({ [f.keyId]: (8_000 * 7 + 16_000) / 8 });
    // An expired hold counts with its length until the expiry: the one above, of 12 s.
    f.nowMs += 12_000;
    await f.sweep();
    await begin(f, 'm');
    expect(await ends(f)).toEqual({ [f.keyId]: Math.floor((9_000 * 7 + 12_000) / 8) });
  });

  it('counts a request for the model that was asked for, also when another one served it', async () => {
    const f = fixture();
    const id = await begin(f, 'asked');
    f.nowMs += 6_000;
    await f.settle(id, 0n, { model: 'fallback' });
    await begin(f, 'fallback');
    expect(await ends(f)).toEqual({});
    await begin(f, 'asked');
    expect(await ends(f)).toEqual({ [f.keyId]: 6_000 });
  });

  it(`keeps the means of the ${MAX_MODELS} models that ended last`, async () => {
    const f = fixture();
    for (let n = 0; n < MAX_MODELS; n++) await known(f, `m${n}`, 1_000 + n);
    // The oldest one ends again, so the second oldest goes when a new one comes.
    await known(f, 'm0', 1_000);
    await known(f, 'new', 2_000);
    const keys = ['m0', 'm1', 'm2', `m${MAX_MODELS - 1}`, 'new'].map((model) => ({ model, keyId: newId('key') }));
    for (const { model, keyId } of keys) await begin(f, model, { keyId });
    const said = await ends(f);
    expect(keys.map(({ keyId }) => said[keyId])).toEqual([1_000, undefined, 1_002, 1_000 + MAX_MODELS - 1, 2_000]);
  });

  it('leaves names of models as they are', async () => {
    const f = fixture();
    const names = ['org/model:7b', 'ü "quoted" \\ {m}', 'a,b', 'NULL', ''];
    for (const [n, name] of names.entries()) await known(f, name, 1_000 * (n + 1));
    const keys = names.map(() => newId('key'));
    for (const [n, name] of names.entries()) await begin(f, name, { keyId: keys[n]! });
    const said = await ends(f);
    expect(keys.map((keyId) => said[keyId])).toEqual([1_000, 2_000, 3_000, 4_000, 5_000]);
  });

  it(`reads no more than ${MAX_RUNNING} running requests of a tenant`, async () => {
    const f = fixture();
    await known(f, 'm', 30_000);
    const all = Array.from({ length: MAX_RUNNING }, () => of(f, 'm'));
    for (let n = 0; n < MAX_RUNNING; n += 128) await f.store.admit(all.slice(n, n + 128));
    f.nowMs += 1_000;
    expect(await ends(f)).toEqual({ [f.keyId]: 29_000 });
    const last = await begin(f, 'm');
    expect(await ends(f)).toEqual({});
    await f.void(last);
    expect(await ends(f)).toEqual({ [f.keyId]: expect.any(Number) as number });
  });
  it('finds a running request behind thousands of settled ones that wait for the ledger', async () => {
    const f = fixture();
    await known(f, 'm', 30_000);
    for (let n = 0; n < MANY_SETTLED; n += 512) {
      const all = Array.from({ length: 512 }, () => of(f, 'm'));
      await f.store.admit(all);
      f.nowMs += 30_000;
      await f.store.settle(all.map(({ draft }) => ({ event: f.event(draft.id, 0n, { model: 'm' }) })));
    }
    await begin(f, 'm');
    f.nowMs += 1_000;
    expect(await ends(f)).toEqual({ [f.keyId]: 29_000 });
  });
}
