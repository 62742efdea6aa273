import { eventually } from '@tollgate/testing';
import type { Catalog, CatalogModel } from '../catalog/catalog';
import { backend, closeAll } from './exchange.fixture';
import { ModelsInForce } from './models-in-force';
import { Upstream } from './upstream';

afterAll(closeAll);

const modelOf = (...backends: CatalogModel['backends']) => [{ backends } as unknown as CatalogModel];

it('the fleet and its health checks follow the models from the start, and after each change', async () => {
  const asked = { former: 0, next: 0 };
  const checked = async (name: keyof typeof asked) => {
    const one = await backend((_request, response) => {
      asked[name] += 1;
      response.end('{}');
    });
    one.health = { path: '/health', intervalMs: 50, isStrict: true };
    return one;
  };
  const [former, next] = await Promise.all([checked('former'), checked('next')]);
  let models = modelOf(former);
  let change = () => {};
  const upstream = new Upstream();
  const config = { onChange: (listener: () => void) => void (change = listener) };
  const inForce = new ModelsInForce(upstream, { all: () => models } as unknown as Catalog, config as never);
  const names = () => [...upstream.fleet.all].map(({ name }) => name);

  inForce.onModuleInit();
  expect(names()).toEqual([former.name]);
  await eventually(() => expect(asked.former).toBeGreaterThan(0));
  models = modelOf(next);
  change();
  expect(names()).toEqual([next.name]);
  await eventually(() => expect(asked.next).toBeGreaterThan(0));
  inForce.onApplicationShutdown();
  await upstream.close();
});
