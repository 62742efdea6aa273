import { countTokens } from '../../../apps/gateway/src/prompt/tokenizer';
import { type Play, usePlayedBackend } from '../backends/played-backend';
import { type Caller, useGateway } from '../use-gateway';

/** The tokens that each request asks for, unless it says otherwise. */
export const CAP = 100;
/** A text of more tokens than that. */
export const LONG = Array.from({ length: 300 }, (_, i) => ` word${i % 7}`).join('');
export const count = (text: string) => countTokens('o200k_base', text);
const messages = [{ role: 'user', content: 'Say something about gateways.' }];

export type CappedGateway = ReturnType<typeof useCappedGateway>;

/** A gateway before a backend that answers as the test says. */
export function useCappedGateway() {
  const backend = usePlayedBackend(
    'own',
    (url) =>
      `  - { id: vectors, kind: embedding, contextTokens: 256,
      price: { input: '1', output: '0' }, backends: [{ url: '${url}' }] }`,
  );
  const gateway = useGateway({ yaml: backend.yaml });
  async function ask(caller: Caller, play: Play, fields: object = {}, path = '/v1/chat/completions') {
    backend.state.play = play;
    return gateway.post(path, { model: 'own', messages, max_tokens: CAP, ...fields }, caller);
  }
  return { backend, gateway, ask };
}
