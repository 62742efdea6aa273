type Token<T> = abstract new (...args: never[]) => T;

export interface GlobalValue<T = unknown> {
  provide: Token<T>;
  useValue: T;
}

/** So that a value is never given for another class. */
export const provide = <T>(token: Token<T>, value: T): GlobalValue<T> => ({ provide: token, useValue: value });

/**
 * What a program gives to all its modules: values by their class, as a Nest module (its form only: this library knows
 * no framework).
 */
export function globalModule(values: readonly GlobalValue[]) {
  class GlobalModule {}
  return {
    module: GlobalModule,
    global: true,
    providers: [...values],
    exports: values.map((value) => value.provide),
  };
}
