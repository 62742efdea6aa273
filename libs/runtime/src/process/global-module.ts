type Token<T> = abstract new (...args: never[]) => T;

export interface GlobalValue<T = unknown> {
  provide: Token<T>;
  useValue: T;
}

/** Ensures that a value is never provided for another class. */
export const provide = <T>(token: Token<T>, value: T): GlobalValue<T> => ({ provide: token, useValue: value });

/**
 * The values that a program provides to all its modules, by their class. Has the form of a Nest module; this library
 * itself knows no framework.
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
