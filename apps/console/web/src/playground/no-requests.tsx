import { useQuery } from '@tanstack/react-query';
import type { ModelList } from '../../../src/api/answers';
import { api } from '../backend/api';
import { curlOf } from './calls';
import { usePerson, useTenant } from '../backend/me';
import { Empty, Loading } from '../parts/page';

const MAX_TOKENS = 20;

/** Nothing to show yet, and a request that changes that. */
export function NoRequests({ text }: { text: string }) {
  const { id, path } = useTenant();
  const { inferenceUrl } = usePerson();
  const models = useQuery({
    queryKey: ['models', id],
    queryFn: () => api.get<ModelList>(path('models')),
  });
  if (models.isPending) return <Loading />;
  const model = models.data?.firstChat ?? null;
  if (model === null) return <Empty text={text} />;
  const body = { model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: MAX_TOKENS };
  return <Empty text={`${text} This sends one:`} command={curlOf(inferenceUrl, { path: '/chat/completions', body })} />;
}
