/**
 * The output of a command. With `--json`, stdout gets exactly one JSON document, and all text for people goes to
 * stderr.
 */
export class Output {
  constructor(readonly json: boolean) {}

  /**
   * The command's answer: the value as JSON, or the text. It goes to stderr if stdout does not take it, because it may
   * have a secret that is shown only once, or the ref of an entry. `main.ts` makes that a failure.
   */
  answer(value: unknown, text: string): void {
    const answer = this.json ? JSON.stringify(value, null, 2) : text;
    process.stdout.write(`${answer}\n`, (error: NodeJS.ErrnoException | null | undefined) => {
      if (error && error.code !== 'EPIPE') this.note(answer);
    });
  }

  /** A negative answer: still the answer as JSON, but on stderr for people. */
  failure(value: unknown, text: string): void {
    if (this.json) this.answer(value, text);
    else this.note(text);
  }

  /** A remark beside the answer. */
  note(text: string): void {
    process.stderr.write(`${text}\n`);
  }
}
