import { PassThrough } from 'node:stream';
import { agrees, confirm, confirmTenant, type Terminal } from './agrees';
import type { OperatorClient } from './operator-client';

/** A terminal on which a person types these lines, or a pipe. */
function terminalWith(typed: string, isTTY = true): Terminal & { shown(): string } {
  const stdin = Object.assign(new PassThrough(), { isTTY });
  const stderr = new PassThrough();
  let shown = '';
  stderr.on('data', (chunk) => (shown += String(chunk)));
  stdin.end(typed);
  return { stdin, stderr, shown: () => shown };
}

const client = {
  get: () => Promise.resolve({ data: { id: 'ten_1', name: 'Acme Ltd' } }),
} as unknown as OperatorClient;
const ending = (terminal: Terminal, yes = false) => confirmTenant(client, 'ten_1', 'This ends it.', { yes, terminal });

describe('a question', () => {
  it.each([
    ['y\n', true],
    ['Yes\n', true],
    ['n\n', false],
    ['\n', false],
    // The end of the input is no answer, and leaves nothing waiting.
    ['', false],
  ])('that is answered with %j is %p', async (typed, expected) => {
    expect(await agrees('Go on?', 'give --yes.', terminalWith(typed))).toBe(expected);
  });

  it('is wrong usage where nobody can answer it, unless --yes is given', async () => {
    const pipe = terminalWith('y\n', false);
    const question = () => 'Void it?';
    await expect(confirm(question, { yes: false, terminal: pipe })).rejects.toMatchObject({
      name: 'UsageFailure',
      message: 'There is no terminal for the question: give --yes to go on without asking.',
    });
    await confirm(question, { yes: true, terminal: pipe });
    await expect(confirm(question, { yes: false, terminal: terminalWith('n\n') })).rejects.toMatchObject({
      code: 'not_confirmed',
    });
  });
});

describe('the end of a tenant', () => {
  it('goes on when its name was typed, and shows it', async () => {
    const terminal = terminalWith('Acme Ltd\n');
    await ending(terminal);
    expect(terminal.shown()).toContain('This ends it. Tenant ten_1 is Acme Ltd.\nType its name to go on: ');
  });

  it.each(['y\n', 'acme ltd\n', 'ten_1\n', '\n', ''])('is refused when %j was typed', async (typed) => {
    await expect(ending(terminalWith(typed))).rejects.toMatchObject({ code: 'not_confirmed' });
  });

  it('is wrong usage without a terminal, before the server is asked', async () => {
    await expect(ending(terminalWith('Acme Ltd\n', false))).rejects.toMatchObject({ name: 'UsageFailure' });
    await ending(terminalWith('', false), true);
  });
});
