/** A schema that no value of bounded depth and size satisfies, or one with an unsupported keyword value. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
}
