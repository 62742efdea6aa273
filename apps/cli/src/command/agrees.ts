import { createInterface } from 'node:readline/promises';
import { Failure, UsageFailure } from './failure';
import { type OperatorClient, tenantPath } from './operator-client';
import { printable } from './table';

/** Where a person is asked: the question goes to stderr, because stdout has the answer of the command. */
export interface Terminal {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean };
  stderr: NodeJS.WritableStream;
}

/** Asks a person on the terminal. UsageFailure without one: `otherwise` names the option. */
export async function agrees(question: string, otherwise: string, terminal: Terminal = process): Promise<boolean> {
  return /^y(es)?$/i.test(await asked(`${question} [y/N] `, otherwise, terminal));
}

/** For a step that cannot be undone. Failure unless the person agrees. `yes`: nobody is asked. */
export async function confirm(
  question: () => string | Promise<string>,
  { yes, terminal = process }: { yes: boolean; terminal?: Terminal },
): Promise<void> {
  if (yes) return;
  if (!terminal.stdin.isTTY) throw noTerminal(WITHOUT_TERMINAL);
  if (await agrees(await question(), WITHOUT_TERMINAL, terminal)) return;
  throw new Failure('Nothing was changed.', 'not_confirmed');
}

/**
 * For a step that ends a tenant: the person types its name. Failure unless the name is right. `yes`: nobody is asked.
 */
export async function confirmTenant(
  client: Pick<OperatorClient, 'get'>,
  tenantId: string,
  what: string,
  { yes, terminal = process }: { yes: boolean; terminal?: Terminal },
): Promise<void> {
  if (yes) return;
  if (!terminal.stdin.isTTY) throw noTerminal(WITHOUT_TERMINAL);
  const { data } = await client.get<{ data: { id: string; name: string } }>(tenantPath(tenantId));
  const name = printable(data.name);
  const question = `${what} Tenant ${data.id} is ${name}.\nType its name to go on: `;
  if ((await asked(question, WITHOUT_TERMINAL, terminal)) !== name.trim())
    throw new Failure("That is not the tenant's name. Nothing was changed.", 'not_confirmed');
}

const WITHOUT_TERMINAL = 'give --yes to go on without asking.';

const noTerminal = (otherwise: string) => new UsageFailure(`There is no terminal for the question: ${otherwise}`);

/** The line that the person types. Empty at the end of the input. */
async function asked(question: string, otherwise: string, { stdin, stderr }: Terminal): Promise<string> {
  if (!stdin.isTTY) throw noTerminal(otherwise);
  const prompt = createInterface({ input: stdin, output: stderr });
  try {
    const line = await new Promise<string>((done, fail) => {
      prompt.question(question).then(done, fail);
      // A question is never answered once the input has ended. An answer just before that counts.
      prompt.once('close', () => setImmediate(done, ''));
    });
    return line.trim();
  } finally {
    prompt.close();
  }
}
