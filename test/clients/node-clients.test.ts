import { clientSuite } from './client.suite';

clientSuite([
  { client: 'openai (Node)', command: [process.execPath, 'openai.mjs'] },
  { client: 'AI SDK', command: [process.execPath, 'ai-sdk.mjs'] },
  { client: 'LangChain.js', command: [process.execPath, 'langchain.mjs'] },
]);
