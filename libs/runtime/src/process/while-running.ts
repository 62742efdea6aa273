/** Runs as long as a Nest application, which calls its hooks. This library itself knows no framework. */
export class WhileRunning {
  private stop: () => unknown = () => {};

  /** @param start returns what ends it, and may take until that has happened */
  constructor(private readonly start: () => () => unknown) {}

  onApplicationBootstrap(): void {
    this.stop = this.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.stop();
  }
}

/** The same as a provider of a module: `start` gets these providers of it. */
export function whileRunning<Parts extends readonly unknown[]>(
  inject: { [I in keyof Parts]: abstract new (...args: never[]) => Parts[I] },
  start: (...parts: Parts) => () => unknown,
) {
  return {
    provide: Symbol('while running'),
    inject: [...inject],
    useFactory: (...parts: Parts) => new WhileRunning(() => start(...parts)),
  };
}
