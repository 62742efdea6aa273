/** A request of the inference API. */
export interface Call {
  /** Below the address of the inference API, such as `/chat/completions`. */
  path: '/chat/completions' | '/embeddings';
  body: Readonly<Record<string, unknown>>;
  /** The key; absent: that of the environment. */
  apiKey?: string;
}

/** The same as a line for a shell. */
export function curlOf(url: string, { path, body, apiKey }: Call): string {
  const bearer = apiKey === undefined ? '"Authorization: Bearer $TOLLGATE_KEY"' : `'Authorization: Bearer ${apiKey}'`;
  const json = JSON.stringify(body).replaceAll("'", `'\\''`);
  return `curl ${url}${path} -H ${bearer} -H 'Content-Type: application/json' -d '${json}'`;
}
