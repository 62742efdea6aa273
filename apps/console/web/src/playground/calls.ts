/** A request of the inference API. */
export interface Call {
  /** Below the address of the inference API, such as `/chat/completions`. */
  path: '/chat/completions' | '/embeddings';
  body: Readonly<Record<string, unknown>>;
  /** The key. Absent: the key in the environment. */
  apiKey?: string;
}

/** The same as a line for a shell. */
export function curlOf(url: string, { path, body, apiKey }: Call): string {
  const bearer = apiKey === undefined ? '"Authorization: Bearer $TOLLGATE_KEY"' : `'Authorization: Bearer ${apiKey}'`;
  const json = JSON.stringify(body).replaceAll("'", `'\\''`);
  return `curl ${url}${path} -H ${bearer} -H 'Content-Type: application/json' -d '${json}'`;
}

/** The method of the package `openai`, and what its answer is about: the same words in both languages. */
const methodOf = ({ path }: Call): readonly [method: string, shown: string] =>
  path === '/embeddings'
    ? ['embeddings', 'answer.data[0].embedding']
    : ['chat.completions', 'answer.choices[0].message.content'];

/** The same as a module of Node.js, with the package `openai`. */
export function nodeOf(url: string, call: Call): string {
  const { body, apiKey } = call;
  const key = apiKey === undefined ? 'process.env.TOLLGATE_KEY' : `'${apiKey}'`;
  const [method, shown] = methodOf(call);
  return [
    `import OpenAI from 'openai';`,
    `const client = new OpenAI({ baseURL: '${url}', apiKey: ${key} });`,
    `const answer = await client.${method}.create(${JSON.stringify(body)});`,
    `console.log(${shown});`,
  ].join('\n');
}

/** The same as a program of Python, with the package `openai`. */
export function pythonOf(url: string, call: Call): string {
  const { body, apiKey } = call;
  const key = apiKey === undefined ? 'os.environ["TOLLGATE_KEY"]' : `"${apiKey}"`;
  const [method, shown] = methodOf(call);
  // Texts, numbers, lists and objects are written in Python as in JSON.
  const fields = Object.entries(body).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return [
    ...(apiKey === undefined ? ['import os'] : []),
    'from openai import OpenAI',
    `client = OpenAI(base_url="${url}", api_key=${key})`,
    `answer = client.${method}.create(${fields.join(', ')})`,
    `print(${shown})`,
  ].join('\n');
}
