import { clientSuite } from './client.suite';
import { python } from './python';

clientSuite([
  { client: 'openai (Python)', command: [python('tools'), 'openai_python.py'] },
  { client: 'litellm', command: [python('litellm'), 'litellm_python.py'] },
]);
