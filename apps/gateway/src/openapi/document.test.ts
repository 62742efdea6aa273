import { INFERENCE_ERRORS } from '../inference/errors';
import { MANAGEMENT_PREFIX, MANAGEMENT_ROUTES } from '../management/routes';
import { OPERATOR_ERRORS } from '../operator/errors';
import { OPERATOR_PREFIX, OPERATOR_ROUTES } from '../operator/routes';
import { openApiDocument, openApiYaml } from './document';
import { openApiSuite, operationsOf } from './open-api.suite';
import { operatorDocument, operatorYaml } from './operator-document';

const document = openApiDocument();
const operator = operatorDocument();
openApiSuite('the document of the public surfaces', document, openApiYaml());
openApiSuite('the document of the operator API', operator, operatorYaml());

it('the public one has exactly the ten operations, each with its credential', () => {
  const named = operationsOf(document).map(({ path, method, operation: { security } }) => ({ path, method, security }));
  const management = MANAGEMENT_ROUTES.flatMap(({ path, methods }) =>
    methods.filter((method) => method !== 'HEAD').map((method) => `${method} ${MANAGEMENT_PREFIX}${path}`),
  );
  const inference = ['POST /v1/chat/completions', 'POST /v1/completions', 'POST /v1/embeddings', 'GET /v1/models'];
  expect(named.map(({ path, method }) => `${method.toUpperCase()} ${path}`).sort()).toEqual(
    [...inference, ...management].sort(),
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

it('the one of the operator API has exactly the routes of its table, and asks for the secret', () => {
  const routes = OPERATOR_ROUTES.filter(
    ({ path }) => path.startsWith(OPERATOR_PREFIX) && !path.endsWith('openapi.yaml'),
  ).flatMap(({ path, methods }) => methods.filter((method) => method !== 'HEAD').map((method) => `${method} ${path}`));
  const operations = operationsOf(operator);
  expect(operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`).sort()).toEqual(routes.sort());
  for (const { operation } of operations) expect(operation['security']).toEqual([{ operatorSecret: [] }]);
});

it('the one of the operator API names every code of its table', () => {
  const text = JSON.stringify(operator['paths']);
  // The address or the method is wrong: no operation of the document answers with it.
  for (const code of Object.keys(OPERATOR_ERRORS))
    if (code !== 'method_not_allowed') expect(text).toContain(`"${code}"`);
});
