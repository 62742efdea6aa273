/**
 * Splits the items into calls that have no id twice, because the SQL functions write all rows of a call in one
 * statement. Usually there is one call: only a faulty caller sends an id twice at the same time.
 */
export async function eachIdOnce<I, O>(
  items: readonly I[],
  idOf: (item: I) => string,
  call: (part: readonly I[]) => Promise<O[]>,
): Promise<O[]> {
  const ids = new Set<string>();
  for (const [index, item] of items.entries()) {
    const id = idOf(item);
    if (!ids.has(id)) {
      ids.add(id);
      continue;
    }
    const first = await call(items.slice(0, index));
    return first.concat(await eachIdOnce(items.slice(index), idOf, call));
  }
  return call(items);
}
