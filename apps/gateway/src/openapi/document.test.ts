import { INFERENCE_ERRORS } from '../inference/errors';
import { INFERENCE_PREFIX, INFERENCE_ROUTES } from '../inference/routes';
import { MANAGEMENT_ROUTES } from '../management/routes';
import { OPERATOR_ERRORS } from '../operator/errors';
import { OPERATOR_ROUTES } from '../operator/routes';
import { openApiDocument, openApiYaml } from './document';
import { openApiSuite, operationsOf } from './open-api.suite';
import { operatorDocument, operatorYaml } from './operator-document';
import { prefixed, routesOf } from './route-table';

const document = openApiDocument();
const operator = operatorDocument();
openApiSuite('the document of the public surfaces', document, openApiYaml());
openApiSuite('the document of the operator API', operator, operatorYaml());

it('the public one has exactly the ten operations, each with its credential', () => {
  const named = operationsOf(document).map(({ path, method, operation: { security } }) => ({ path, method, security }));
  const tables = [...routesOf(prefixed(INFERENCE_PREFIX, INFERENCE_ROUTES)), ...routesOf(MANAGEMENT_ROUTES)];
  expect(named).toHaveLength(10);
  expect(named.map(({ path, method }) => `${method} ${path}`)).toEqual(
    tables.map(({ path, method }) => `${method} ${path}`),
  );
  for (const { path, security } of named) {
    const scheme = path.startsWith('/v1/') ? 'inferenceKey' : 'managementToken';
    expect(security).toEqual([{ [scheme]: expect.any(Array) }]);
  }
});

it('the public one names every code of the inference table that a route can answer', () => {
  const chat = JSON.stringify(operationsOf(document).find(({ path }) => path === '/v1/chat/completions'));
  for (const code of Object.keys(INFERENCE_ERRORS)) {
    if (code !== 'route_not_found' && code !== 'method_not_allowed') expect(chat).toContain(`"${code}"`);
  }
});

it('the one of the operator API has exactly the routes of its table that need the secret, and asks for it', () => {
  const operations = operationsOf(operator);
  const routes = routesOf(OPERATOR_ROUTES).filter(({ operation }) => operation !== null);
  expect(operations.map(({ path, method }) => `${method} ${path}`)).toEqual(
    routes.map(({ path, method }) => `${method} ${path}`),
  );
  for (const { operation } of operations) expect(operation['security']).toEqual([{ operatorSecret: [] }]);
});

it('the one of the operator API names every code of its table', () => {
  const text = JSON.stringify(operator['paths']);
  // The address or the method is wrong: no operation of the document answers with it.
  for (const code of Object.keys(OPERATOR_ERRORS))
    if (code !== 'method_not_allowed') expect(text).toContain(`"${code}"`);
});
