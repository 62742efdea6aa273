type Token<T> = abstract new (...args: never[]) => T;

export interface GlobalValue<T = unknown> {
  provide: Token<T>;
  useValue: T;
}

/** So that a value is never given for another class. */
export const provide = <T>(token: Token<T>, value: T): GlobalValue<T> => ({ provide: token, useValue: value });

/**
 * What a program gives to all its modules: values by their class, as a Nest module (its form only: the libraries know no framework). `started` is called when
 * every module has registered what it consumes and handles, before any module's own `onApplicationBootstrap`: what publishes by itself starts after that.
 */
export function globalModule(values: readonly GlobalValue[], started: () => Promise<void>) {
  class GlobalModule {
    async onApplicationBootstrap(): Promise<void> {
      await started();
    }
  }
  return {
    module: GlobalModule,
    global: true,
    providers: [...values],
    exports: values.map((value) => value.provide),
  };
}
