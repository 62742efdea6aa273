/** The choices of a stream that its backend has not ended yet. */
export class OpenChoices {
  private readonly open = new Set<number>();
  /** No choice has ended other than with `length`. */
  private isAtLimit = true;

  /** @param count the choices that were asked for */
  constructor(private readonly count: number) {
    this.restart();
  }

  /** Another backend begins to answer. */
  restart(): void {
    this.isAtLimit = true;
    for (let index = 0; index < this.count; index++) this.open.add(index);
  }

  /** @param atLimit each of them ended with `length` */
  end(finished: readonly number[], atLimit: boolean): void {
    this.isAtLimit &&= atLimit;
    for (const index of finished) this.open.delete(index);
  }

  get indexes(): number[] {
    return [...this.open];
  }

  get haveEnded(): boolean {
    return this.open.size === 0;
  }

  /** All have ended, and each with `length`. */
  get wentToLimit(): boolean {
    return this.isAtLimit && this.haveEnded;
  }
}
