import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inOptions, PHRASES } from './field-options';
import { NO_KEY, NO_OPERATOR_TOKEN, NO_TENANT } from './operator-client';

const APPS = join(__dirname, '../../..');
const SOURCES = globSync('{auth,billing,gateway,metering}/src/**/*.ts', { cwd: APPS })
  .filter((file) => !/\.(test|part|suite|fixture)\.ts$/.test(file))
  .map((file) => readFileSync(join(APPS, file), 'utf8'));

it.each(PHRASES.map(([words]) => [words]))('a message of a service has the words %s', (words) => {
  expect(SOURCES.some((text) => words.test(text))).toBe(true);
});

it.each([NO_TENANT, NO_KEY, NO_OPERATOR_TOKEN])('the services refuse with the text %j', (text) => {
  expect(SOURCES.some((source) => source.includes(`'not_found', '${text}'`))).toBe(true);
});

describe('fields of the API become options', () => {
  it.each([
    ['from must be before to. The default of to is now.', '--from must be before --to. The default of --to is now.'],
    ['The default of from is the first of a month.', 'The default of --from is the first of a month.'],
    ['from must not be after to.', '--from must not be after --to.'],
    ['from and to must be full hours if step is hour.', '--from and --to must be full hours if step is hour.'],
    // Their names are no English words, so they are known anywhere.
    ['Another tenant has this externalId. Choose another.', 'Another tenant has this --external-id. Choose another.'],
    ['It is longer than 31 days if groupBy has backend.', 'It is longer than 31 days if --group-by has backend.'],
    ['tenantId must be an id.', '--tenant must be an id.'],
    // Its field is one of a file, which has the names of the API.
    ['keys.0.expiresAt: expiresAt must be a time.', 'keys.0.expiresAt: expiresAt must be a time.'],
  ])('%s', (message, shown) => {
    expect(inOptions(message)).toBe(shown);
  });

  it('a word that only looks like a field stays', () => {
    expect(inOptions('The reason is not from the model. Talk to a reasonable source.')).toBe(
      'The reason is not from the model. Talk to a reasonable source.',
    );
  });
});
