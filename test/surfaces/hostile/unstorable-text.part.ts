import type { TSchema } from '@sinclair/typebox';
import { newId } from '@tollgate/contracts';
import { MANAGEMENT_ROUTES } from '../../../apps/gateway/src/management/routes';
import type { Endpoint } from '../../../apps/gateway/src/openapi/operation';
import { type RouteTable, routesOf } from '../../../apps/gateway/src/openapi/route-table';
import { OPERATOR_ROUTES } from '../../../apps/gateway/src/operator/routes';
import { send } from '../ask';
import { OPERATOR_SECRET, type Services } from '../services';

/** PostgreSQL refuses to store them, and even to compare with them. The second one is half of a surrogate pair. */
const UNSTORABLE = ['\0', '\ud800'];
/** Forms of text that an endpoint may accept. */
const FORMS = (character: string) => [
  character,
  `a${character}b`,
  `a${character}@b.example`,
  `${'a'.repeat(20)}${character}`,
];

type Body = Record<string, unknown>;
interface Place {
  method: string;
  path: string;
  /** A valid body. */
  body: Body | undefined;
  operation: Endpoint;
}

/** The endpoints of a table. The paths name nothing that exists. */
function placesOf(table: RouteTable<Endpoint | null>): Place[] {
  return routesOf(table).flatMap(({ path, method, operation }) => {
    if (operation === null) return [];
    const [body] = Object.values(operation.body?.examples ?? {}) as Body[];
    return [{ method: method.toUpperCase(), path, body, operation }];
  });
}

const IDS: Record<string, string> = {
  tenantId: newId('ten'),
  accountingNumber: '1',
  id: newId('key'),
  entryId: newId('ent'),
  requestId: newId('req'),
  keyId: newId('key'),
  name: newId('req'),
};
const filled = (path: string, ids = IDS): string => path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name]!);

/** Paths with one parameter that is not valid. In a URL, half of a surrogate pair is no text at all. */
function hostilePaths({ path }: Place): string[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  return names.flatMap((name) =>
    ['%00', `${IDS[name]}%00`, `%00${IDS[name]}`].map((value) => filled(path, { ...IDS, [name]: value })),
  );
}

function hostileQueries({ operation }: Place): string[] {
  return Object.keys(operation.query?.properties ?? {}).flatMap((name) =>
    FORMS('%00').map((text) => `?${name}=${text}`),
  );
}

/** The body once for each field and text: fields of its example, and others of its schema. */
function hostileBodies({ body, operation }: Place): Body[] {
  if (operation.body === undefined) return [];
  const texts = UNSTORABLE.flatMap(FORMS);
  const { properties } = operation.body.schema as TSchema & { properties: Record<string, TSchema> };
  return Object.entries(properties).flatMap(([name, { type }]) => {
    const value = body?.[name];
    return texts.flatMap((text) => {
      const variants = typeof value === 'object' && value !== null ? replaced(value, text) : [];
      return [text, ...(type === 'array' ? [[text]] : []), ...variants].map((hostile) => ({
        ...body,
        [name]: hostile,
      }));
    });
  });
}

/** The value once for each text in it, which is replaced. */
function replaced(value: unknown, text: string): unknown[] {
  if (typeof value === 'string') return [text];
  if (Array.isArray(value))
    return value.flatMap((item, at) =>
      replaced(item, text).map((one) => [...value.slice(0, at), one, ...value.slice(at + 1)]),
    );
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, item]) =>
    replaced(item, text).map((one) => ({ ...value, [name]: one })),
  );
}

export function unstorableTextTests(services: Services): void {
  let token: string;
  beforeAll(async () => {
    token = (await services.tenant()).token;
  });

  describe.each<[string, RouteTable<Endpoint | null>, () => [url: string, token: string]]>([
    ['operator', OPERATOR_ROUTES, () => [services.operatorUrl, OPERATOR_SECRET]],
    ['management', MANAGEMENT_ROUTES, () => [services.publicUrl, token]],
  ])('of the %s API', (_, table, caller) => {
    const expectRefusal = async ({ method, body }: Place, path: string, statuses: number[]) => {
      const [url, credential] = caller();
      const { status, json } = await send(url + path, { method, token: credential, ...(body && { body }) });
      expect([method, path, body, status, statuses.includes(status), json]).toEqual([
        ...[method, path, body, status, true],
        { error: { code: expect.any(String), message: expect.any(String) } },
      ]);
    };

    it('in a path it is the id of nothing: 404', async () => {
      const paths = placesOf(table).flatMap((place) => hostilePaths(place).map((path) => ({ place, path })));
      expect(paths.length).toBeGreaterThan(0);
      for (const { place, path } of paths) await expectRefusal(place, path, [404]);
    });

    it('in a query or a body it is refused: 400, or 404 where it would name a tenant or a backend', async () => {
      for (const place of placesOf(table)) {
        for (const query of hostileQueries(place)) await expectRefusal(place, filled(place.path) + query, [400]);
        for (const body of hostileBodies(place))
          await expectRefusal({ ...place, body }, filled(place.path), [400, 404]);
      }
    });
  });
}
