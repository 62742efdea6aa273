import { isNode, visit, type Document } from 'yaml';

export interface RecursiveAlias {
  message: string;
  /** The place in the text. */
  offset: number;
}

/**
 * The aliases of a YAML document that are inside the value that they stand for. Such a value has no end, and code that
 * walks through it overflows the stack.
 */
export function recursiveAliases(document: Document): RecursiveAlias[] {
  const found: RecursiveAlias[] = [];
  visit(document, {
    Alias(_, alias, path) {
      // Resolving walks through the document, so only an anchor of the same name around the alias is a reason for it.
      if (!path.some((node) => isNode(node) && 'anchor' in node && node.anchor === alias.source)) return;
      const value = alias.resolve(document);
      if (!value || !path.includes(value)) return;
      const message = `the alias *${alias.source} is inside the value that it stands for`;
      found.push({ message, offset: alias.range?.[0] ?? 0 });
    },
  });
  return found;
}
