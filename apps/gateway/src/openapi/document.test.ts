import { INFERENCE_ERRORS } from '../inference-errors';
import { INFERENCE_PREFIX, INFERENCE_ROUTES } from '../inference/routes';
import { MANAGEMENT_ROUTES } from '../management/routes';
import { OPERATOR_ERRORS } from '../operator/errors';
import { OPERATOR_ROUTES } from '../operator/routes';
import { openApiDocument, openApiYaml } from './document';
import { openApiTests, operationsOf } from './open-api.part';
import { operatorDocument, operatorYaml } from './operator-document';
import { prefixed, routesOf } from './route-table';

const document = openApiDocument();
const operator = operatorDocument();
openApiTests('the document of the public surfaces', document, openApiYaml());
openApiTests('the document of the operator API', operator, operatorYaml());

it('the public document has exactly the eleven operations, each with its kind of credential', () => {
  const named = operationsOf(document).map(({ path, method, operation: { security } }) => ({ path, method, security }));
  const tables = [...routesOf(prefixed(INFERENCE_PREFIX, INFERENCE_ROUTES)), ...routesOf(MANAGEMENT_ROUTES)];
  expect(named).toHaveLength(11);
  expect(named.map(({ path, method }) => `${method} ${path}`)).toEqual(
    tables.map(({ path, method }) => `${method} ${path}`),
  );
  for (const { path, security } of named) {
    const scheme = path.startsWith('/v1/') ? 'inferenceKey' : 'managementToken';
    expect(security).toEqual([{ [scheme]: expect.any(Array) }]);
  }
});

it('the public document names every error code of the inference API that a route can answer', () => {
  const chat = JSON.stringify(operationsOf(document).find(({ path }) => path === '/v1/chat/completions'));
  for (const code of Object.keys(INFERENCE_ERRORS)) {
    if (code !== 'route_not_found' && code !== 'method_not_allowed') expect(chat).toContain(`"${code}"`);
  }
});

it.each([
  ['public', document],
  ['operator', operator],
])('each answer of the %s document has both ids of its request', (_, { components, paths }) => {
  const shared = Object.values((components as { responses: object }).responses) as object[];
  const own = operationsOf({ paths } as typeof document).flatMap(({ operation }) =>
    Object.values(operation['responses']!),
  );
  for (const answer of [...shared, ...(own as object[])])
    if (!('$ref' in answer))
      expect(answer).toMatchObject({ headers: { 'x-request-id': {}, 'x-tollgate-request-id': {} } });
});

it('each public operation may be answered 400, without valid HTTP, and 429, after too many wrong credentials', () => {
  for (const { path, method, operation } of operationsOf(document))
    expect([method, path, Object.keys(operation['responses']!)]).toEqual([
      method,
      path,
      expect.arrayContaining(['400', '401', '429']),
    ]);
});

it('the operator document has exactly the routes that need a credential, and declares it', () => {
  const operations = operationsOf(operator);
  const routes = routesOf(OPERATOR_ROUTES).filter(({ operation }) => operation !== null);
  expect(operations.map(({ path, method }) => `${method} ${path}`)).toEqual(
    routes.map(({ path, method }) => `${method} ${path}`),
  );
  expect(operations.map(({ operation }) => operation['security'])).toEqual(
    routes.map(({ operation }) => [{ operatorSecret: [] }, { operatorToken: [operation!.scope] }]),
  );
});

it('the operator document names every error code of its table', () => {
  const text = JSON.stringify(operator['paths']);
  // No documented operation answers with it, because the method is wrong.
  for (const code of Object.keys(OPERATOR_ERRORS))
    if (code !== 'method_not_allowed') expect(text).toContain(`"${code}"`);
});
