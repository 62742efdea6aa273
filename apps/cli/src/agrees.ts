import { createInterface } from 'node:readline/promises';
import { UsageFailure } from './failure';

/** Asks a person on the terminal. UsageFailure without one: `otherwise` names the option. */
export async function agrees(question: string, otherwise: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UsageFailure(`There is no terminal for the question: ${otherwise}`);
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await prompt.question(`${question} [y/N] `)).trim());
  } finally {
    prompt.close();
  }
}
