import { InferenceError } from '../inference-errors';

/** Keywords of JSON Schema that refer to a schema. */
const REFERENCES = new Set(['$ref', '$dynamicRef', '$recursiveRef']);
const KNOWN_DIALECT = /^https?:\/\/json-schema\.org\//;

/**
 * Refuses a JSON schema that refers to another document, as some libraries fetch it. References within the schema
 * (`#…`) are allowed. Iterative, so that no input can overflow the stack. Throws InferenceError unsupported_parameter.
 */
export function refuseRemoteReferences(schema: unknown, param: string): void {
  const left: unknown[] = [schema];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value !== 'object' || value === null) continue;
    if (Array.isArray(value)) {
      for (const item of value) left.push(item);
      continue;
    }
    for (const [name, inner] of Object.entries(value)) {
      const isRemote =
        typeof inner === 'string' &&
        ((REFERENCES.has(name) && !inner.startsWith('#')) || (name === '$schema' && !KNOWN_DIALECT.test(inner)));
      if (isRemote) {
        const message = `'${param}' refers to another document by "${name}". Include that document in the schema.`;
        throw new InferenceError('unsupported_parameter', { message, param });
      }
      left.push(inner);
    }
  }
}
