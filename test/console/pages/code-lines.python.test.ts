import { eventually, useTestDatabase } from '@tollgate/testing';
import { type Call, nodeOf, pythonOf } from '../../../apps/console/web/src/playground/calls';
import { python } from '../../clients/python';
import { useDataDirectory } from '../../e2e/standalone-process';
import { startConsole, type RunningConsole } from '../running/running-console';
import { printedBy, runNode } from './running-lines';

// Before the database is dropped.
afterAll(() => console_?.stop());
const database = useTestDatabase();
const directory = useDataDirectory();
let console_: RunningConsole;
beforeAll(async () => {
  console_ = await startConsole({
    DATABASE_URL: database.url,
    TOLLGATE_DATA_DIR: directory.path,
    TOLLGATE_DEMO: 'true',
  });
});

const PROMPT = `It's "quoted" \\ and\non two lines: ü 🙂`;
const CALLS: readonly [string, Omit<Call, 'apiKey'>, RegExp][] = [
  [
    'a chat',
    {
      path: '/chat/completions',
      body: { model: 'sim-small', messages: [{ role: 'user', content: PROMPT }], max_tokens: 20 },
    },
    /\S/,
  ],
  // Numbers of a vector.
  ['an embedding', { path: '/embeddings', body: { model: 'sim-embed', input: PROMPT } }, /^\[\s*-?\d/],
];

it.each(CALLS)('the lines of Python and of Node.js for %s run as they are shown', async (_what, call, printed) => {
  const keyed = { ...call, apiKey: console_.demo!.key };
  // A busy gateway may refuse a request.
  const inPython = await eventually(() => printedBy(python('tools'), '-c', pythonOf(console_.inferenceUrl, keyed)));
  expect(inPython).toMatch(printed);
  const inNode = await eventually(() => runNode(nodeOf(console_.inferenceUrl, keyed)));
  expect(inNode).toMatch(printed);
});
