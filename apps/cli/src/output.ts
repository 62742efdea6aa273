/**
 * Where a command's answer goes. With `--json` stdout gets exactly one JSON document, and what people read nowhere else
 * than on stderr.
 */
export class Output {
  constructor(readonly json: boolean) {}

  /** The command's answer: the value as JSON, or the text. */
  answer(value: unknown, text: string): void {
    process.stdout.write(`${this.json ? JSON.stringify(value, null, 2) : text}\n`);
  }

  /** An answer that is bad news: as JSON still the answer, for people on stderr. */
  failure(value: unknown, text: string): void {
    if (this.json) this.answer(value, text);
    else this.note(text);
  }

  /** A remark beside the answer. */
  note(text: string): void {
    process.stderr.write(`${text}\n`);
  }
}
