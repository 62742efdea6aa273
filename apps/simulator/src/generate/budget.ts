import { asciiJson } from './ascii-json';
import { SchemaError } from './schema-error';

const MAX_VALUES = 10_000;
const MAX_TEXT_CHARS = 50_000;
/** Parts of schemas that are read or copied. An honest answer reads some thousands. */
const MAX_STEPS = 1_000_000;
/** The characters that a serializer reads in the time in which a member of a schema is copied. */
const CHARS_PER_STEP = 16;

/**
 * What the values of one request may cost, in all its choices. A small schema can ask for any number of values: by
 * arrays of arrays, or by references that double at each level. The bounds of depth and of one array do not end that.
 * Throws `SchemaError`.
 */
export class Budget {
  #values = 0;
  #chars = 0;
  #steps = 0;

  spendValue(): void {
    if (++this.#values > MAX_VALUES) throw new SchemaError(`more than ${MAX_VALUES} values`);
  }

  /** For a name, or for a value that is text or that the schema contains. */
  spendText(value: unknown): void {
    this.#chars += asciiJson(value).length;
    if (this.#chars > MAX_TEXT_CHARS) throw new SchemaError(`more than ${MAX_TEXT_CHARS} characters`);
  }

  spendSteps(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MAX_STEPS) throw new SchemaError('the schema takes too many steps');
  }

  /** For text that is only read. */
  spendReading(chars: number): void {
    this.spendSteps(chars / CHARS_PER_STEP);
  }
}
