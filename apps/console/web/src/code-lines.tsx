import { Tabs } from '@mantine/core';
import { curlOf, type Call } from './curl';
import { usePerson } from './me';
import { Command } from './page';

/** The same request for three clients. */
export function CodeLines(call: Call) {
  const { inferenceUrl } = usePerson();
  return (
    <Tabs defaultValue="curl">
      <Tabs.List>
        <Tabs.Tab value="curl">curl</Tabs.Tab>
        <Tabs.Tab value="node">Node</Tabs.Tab>
        <Tabs.Tab value="python">Python</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="curl">
        <Command text={curlOf(inferenceUrl, call)} />
      </Tabs.Panel>
      <Tabs.Panel value="node">
        <Command text={nodeOf(inferenceUrl, call)} />
      </Tabs.Panel>
      <Tabs.Panel value="python">
        <Command text={pythonOf(inferenceUrl, call)} />
      </Tabs.Panel>
    </Tabs>
  );
}

function nodeOf(url: string, { path, body, apiKey }: Call): string {
  const key = apiKey === undefined ? 'process.env.TOLLGATE_KEY' : `'${apiKey}'`;
  const [method, shown] =
    path === '/embeddings'
      ? ['embeddings', 'answer.data[0].embedding']
      : ['chat.completions', 'answer.choices[0].message.content'];
  return [
    `import OpenAI from 'openai';`,
    `const client = new OpenAI({ baseURL: '${url}', apiKey: ${key} });`,
    `const answer = await client.${method}.create(${JSON.stringify(body)});`,
    `console.log(${shown});`,
  ].join('\n');
}

function pythonOf(url: string, { path, body, apiKey }: Call): string {
  const key = apiKey === undefined ? 'os.environ["TOLLGATE_KEY"]' : `"${apiKey}"`;
  const [method, shown] =
    path === '/embeddings'
      ? ['embeddings', 'answer.data[0].embedding']
      : ['chat.completions', 'answer.choices[0].message.content'];
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
