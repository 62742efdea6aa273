import { eventually } from '@tollgate/testing';
import type { CatalogModel } from '../../catalog/catalog';
import { type Answer, backend, closeAll, modelWith } from '../exchange.fixture';
import { Fleet } from './fleet';
import { HealthChecks } from './health-checks';

/** Also the time in which a backend must answer. */
const INTERVAL_MS = 500;
const fleet = new Fleet();
const checks = new HealthChecks(fleet);
afterAll(async () => {
  checks.close();
  await closeAll();
});

const modelOf = (...backends: CatalogModel['backends']) => [{ backends } as unknown as CatalogModel];

describe('the health checks', () => {
  it('find a backend unhealthy after two failures, and healthy after one success', async () => {
    let status = 200;
    const asked: string[] = [];
    const answer: Answer = ({ method, url, headers }, response) => {
      asked.push(`${method} ${url} ${headers.authorization} ${String(headers['x-a'])}`);
      response.writeHead(status).end('{}');
    };
    const one = await backend(answer);
    one.health = { path: '/health', intervalMs: INTERVAL_MS, isStrict: true };
    one.headers = ['x-a', 'b'];
    checks.follow(modelOf(one));
    const engine = fleet.engineOf(one.name);
    await eventually(() => expect(asked.length).toBeGreaterThan(2));
    expect([engine.healthy, asked[0]]).toEqual([true, 'GET /health Bearer secret b']);
    status = 404;
    await eventually(() => expect(engine.healthy).toBe(false));
    status = 204;
    await eventually(() => expect(engine.healthy).toBe(true));
    status = 500;
    await eventually(() => expect(engine.healthy).toBe(false));
    // The configuration says no longer that it is to be checked.
    checks.follow([]);
    expect(engine.healthy).toBe(true);
    const before = asked.length;
    checks.follow(modelOf({ ...one, health: null }));
    expect(asked.length).toBe(before);
  });

  it('ask with the key and the headers of the present configuration', async () => {
    let accepted = 'Bearer secret b';
    const one = await backend(({ headers }, response) => {
      const isKnown = `${headers.authorization} ${String(headers['x-a'])}` === accepted;
      response.writeHead(isKnown ? 200 : 401).end();
    });
    const health = { path: '/health', intervalMs: INTERVAL_MS, isStrict: true };
    const former = { ...one, health, headers: ['x-a', 'b'] };
    checks.follow(modelOf(former));
    const engine = fleet.engineOf(one.name);
    accepted = 'Bearer next c';
    await eventually(() => expect(engine.healthy).toBe(false));
    checks.follow(modelOf({ ...former, authorization: 'Bearer next', headers: ['x-a', 'c'] }));
    // Only an answer makes it healthy again.
    expect(engine.healthy).toBe(false);
    await eventually(() => expect(engine.healthy).toBe(true));
  });

  it('of the same backend must all succeed, if its models have different ones', async () => {
    let status = 200;
    // The health of the backend before each answer of the check that fails, after the answers of the other check.
    const seen: boolean[] = [];
    const one = await backend(({ url }, response) => {
      if (url === '/other') seen.push(fleet.engineOf(one.name).healthy);
      response.writeHead(url === '/well' ? 200 : status).end();
    });
    const health = { intervalMs: INTERVAL_MS, isStrict: true };
    const well = { ...one, health: { ...health, path: '/well' } };
    checks.follow(modelOf(well, { ...one, health: { ...health, path: '/other' } }));
    const engine = fleet.engineOf(one.name);
    status = 503;
    await eventually(() => expect(engine.healthy).toBe(false));
    // The success of the one does not hide the failure of the other.
    seen.length = 0;
    await eventually(() => expect(seen.length).toBeGreaterThan(3));
    expect(new Set(seen)).toEqual(new Set([false]));
    checks.follow(modelOf(well));
    expect(engine.healthy).toBe(true);
  });

  it('take any answer below 500 for healthy on a path that the operator did not choose', async () => {
    let status = 401;
    const one = await backend((_, response) => response.writeHead(status).end());
    one.health = { path: '/v1/models', intervalMs: INTERVAL_MS, isStrict: false };
    checks.follow(modelOf(one));
    const engine = fleet.engineOf(one.name);
    await eventually(() => expect(one.asked).toBeGreaterThan(3));
    expect(engine.healthy).toBe(true);
    status = 503;
    await eventually(() => expect(engine.healthy).toBe(false));
  });

  it('find a backend unhealthy that does not answer in time', async () => {
    const one = await backend(() => {});
    one.health = { path: '/health', intervalMs: 100, isStrict: true };
    checks.follow(modelOf(one));
    await eventually(() => expect(fleet.engineOf(one.name).healthy).toBe(false));
  });

  it('find a backend unhealthy whose answer does not end in time, though parts of it come', async () => {
    const one = await backend((_, response) => {
      const dripping = setInterval(() => response.write('.'), 10);
      response.on('close', () => clearInterval(dripping));
    });
    one.health = { path: '/health', intervalMs: 100, isStrict: true };
    checks.follow(modelOf(one));
    await eventually(() => expect([fleet.engineOf(one.name).healthy, one.asked > 4]).toEqual([false, true]));
  });

  it('need only the status of an answer that is long', async () => {
    let cutOff = 0;
    const one = await backend((_, response) => {
      const write = () => {
        while (!response.destroyed && response.write('.'.repeat(16_384)));
      };
      response.on('drain', write).on('close', () => (cutOff += 1));
      write();
    });
    one.health = { path: '/health', intervalMs: INTERVAL_MS, isStrict: true };
    checks.follow(modelOf(one));
    await eventually(() => expect(cutOff).toBe(2));
    expect(fleet.engineOf(one.name).healthy).toBe(true);
  });

  it('ask with each key at a URL, and find only the backends with the refused one unhealthy', async () => {
    const accepted = new Set(['Bearer a', 'Bearer b']);
    const asked = new Set<string | undefined>();
    const one = await backend(({ headers: { authorization } }, response) => {
      asked.add(authorization);
      response.writeHead(accepted.has(authorization ?? '') ? 200 : 401).end();
    });
    const health = { path: '/health', intervalMs: INTERVAL_MS, isStrict: true };
    const withKey = (key: string) => ({ ...one, health, authorization: `Bearer ${key}` });
    const model = modelWith([withKey('a'), withKey('b')]);
    const good = () => fleet.poolOf(model).backends.map((each) => each.isGood(performance.now()));
    checks.follow([model]);
    await eventually(() => expect([...asked].sort()).toEqual(['Bearer a', 'Bearer b']));
    expect(good()).toEqual([true, true]);
    accepted.delete('Bearer a');
    await eventually(() => expect(good()).toEqual([false, true]));
    accepted.add('Bearer a');
    accepted.delete('Bearer b');
    await eventually(() => expect(good()).toEqual([true, false]));
    expect(fleet.engineOf(one.name).healthy).toBe(false);
  });

  it('ask with each set of headers at a URL', async () => {
    const asked = new Set<unknown>();
    const one = await backend(({ headers }, response) => {
      asked.add(headers['x-a']);
      response.end();
    });
    const health = { path: '/health', intervalMs: INTERVAL_MS, isStrict: true };
    const withHeader = (value: string) => ({ ...one, health, headers: ['x-a', value] });
    checks.follow(modelOf(withHeader('a'), withHeader('b')));
    await eventually(() => expect([...asked].sort()).toEqual(['a', 'b']));
  });
});
