import { fileProblem } from '@tollgate/runtime/file-problem';
import { CommanderError } from 'commander';
import { Failure, UsageFailure } from './command/failure';
import { withoutHelpWord } from './command/help-word';
import { writeWhole } from './command/whole-writes';
import { tollgate } from './program';

const FAILED = 1;
const WRONG_USAGE = 2;

/**
 * Runs the command line and returns the exit code. A failure is one line on stderr, and with `--json` also one JSON
 * document on stdout.
 */
async function main(args: readonly string[]): Promise<number> {
  let exitCode = 0;
  const program = tollgate(process.env, () => (exitCode = FAILED));
  try {
    await program.parseAsync(withoutHelpWord(program, args), { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has already printed its message.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`tollgate: ${message}\n`);
    if (error instanceof UsageFailure) return WRONG_USAGE;
    const code = error instanceof Failure ? error.code : 'internal_error';
    if (args.includes('--json')) process.stdout.write(`${JSON.stringify({ error: { code, message } }, null, 2)}\n`);
    return error instanceof Failure && error.isWrongUsage ? WRONG_USAGE : FAILED;
  }
}

writeWhole(process.stdout);
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // `tollgate … | head` closes the pipe early, which is no failure.
  if (error.code === 'EPIPE') return;
  process.stderr.write(`tollgate: The output cannot be written: ${fileProblem(error)}.\n`);
  process.exitCode = FAILED;
});
// A remark that nobody can read must not break off a command that changes something.
process.stderr.on('error', () => {});

void main(process.argv.slice(2)).then((code) => {
  process.exitCode ??= code;
});
