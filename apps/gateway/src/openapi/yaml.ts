import { stringify } from 'yaml';

/**
 * Returns a function that writes the document as YAML, once in a process. It does so at the first request, because that
 * takes 0.1 s of processor time, a tenth of the start of a gateway, and most processes are never asked.
 */
export function yamlOf(document: () => object): () => string {
  let text: string | undefined;
  return () => (text ??= stringify(document(), { aliasDuplicateObjects: false, lineWidth: 0 }));
}
