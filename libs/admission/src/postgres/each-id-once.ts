/**
 * Calls with parts of the items such that no id is twice in one part: the SQL functions write the rows of a call in one
 * statement. As a rule there is one part, as nobody sends an id twice at the same time but in error.
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
