import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { openApiYaml } from '../../../apps/gateway/src/openapi/document';
import { operatorYaml } from '../../../apps/gateway/src/openapi/operator-document';

it.each([
  ['public surfaces', openApiYaml],
  ['operator API', operatorYaml],
])("the document of the %s satisfies redocly's strict rules", (_, yaml) => {
  const linter = join(__dirname, 'lint-openapi.mjs');
  const problems = execFileSync(process.execPath, [linter], { input: yaml(), encoding: 'utf8' });
  expect(JSON.parse(problems)).toEqual([]);
});
