import type { Call } from './connections';
import { jsonTexts, numbers, texts } from './sql-arrays';

/**
 * A parameter that is an array with one element for each request: its name, the type of an element, and the element.
 */
export type Parameter<Request> =
  | readonly [name: string, type: 'text', of: (request: Request) => string]
  /** As the text of its JSON. */
  | readonly [name: string, type: 'json', of: (request: Request) => object]
  | readonly [
      name: string,
      type: 'bigint' | 'numeric' | 'boolean',
      of: (request: Request) => number | bigint | boolean | null,
    ];

/**
 * A call of a SQL function with named arguments. One list produces both the text of the call and its values, so no
 * order and no number of parameters is written twice. One jsonb argument instead would cost a quarter more server time
 * at 256 requests a call (docs/decisions/0014-functions-in-files.md).
 */
export class NamedCall<Request> {
  private readonly text: string;

  /** `scalars`: names and types of the parameters that have one value for the whole call. */
  constructor(
    name: string,
    scalars: readonly (readonly [name: string, type: string])[],
    private readonly parameters: readonly Parameter<Request>[],
    /** The name of the prepared statement, where a function has several. */
    private readonly statement = name,
  ) {
    const arrays = parameters.map(([name, type]) => [name, type === 'json' ? 'text[]' : `${type}[]`] as const);
    const all = [...scalars, ...arrays];
    this.text = `SELECT * FROM ${name}(${all.map(([name, type], i) => `${name} => $${i + 1}::${type}`).join(', ')})`;
  }

  /** `scalars` in the order of the constructor. */
  of(requests: readonly Request[], scalars: readonly unknown[]): Call {
    const arrays = this.parameters.map(([, type, of]) => {
      if (type === 'text') return texts(requests, of);
      return type === 'json' ? jsonTexts(requests, of) : numbers(requests, of);
    });
    return { name: this.statement, text: this.text, values: [...scalars, ...arrays] };
  }
}
