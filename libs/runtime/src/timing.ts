/** The promise's result. Rejects with `late` after `timeoutMs`; that does not stop the work itself. */
export async function withTimeout<T>(
  timeoutMs: number,
  work: Promise<T>,
  late: () => Error = () => new Error(`no answer within ${timeoutMs} ms`),
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), timeoutMs);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the promise is settled, one way or the other, after `timeoutMs` at the most. */
export async function settlesWithin(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  const settled = work.then(
    () => true,
    () => true,
  );
  return withTimeout(timeoutMs, settled).catch(() => false);
}
