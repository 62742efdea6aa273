import { useQuery } from '@tanstack/react-query';
import type { ModelList } from '../../../src/api/answers';
import { api } from '../backend/api';
import { usePerson, useTenant } from '../backend/me';
import { ModelTable } from '../usage/model-table';
import { Answer, Page } from '../parts/page';
import { Playground } from '../playground/playground';

/** The catalog with its prices, as written in the configuration. */
export function ModelsPage() {
  const { id, may, path } = useTenant();
  const { currency } = usePerson();
  const models = useQuery({
    queryKey: ['models', id],
    queryFn: () => api.get<ModelList>(path('models')),
  });
  return (
    <Page
      title="Models"
      about={
        `Prices are in ${currency} per million tokens. A key's profile may allow fewer models. ` +
        'A typical request has 1,000 tokens in and 500 out.'
      }
    >
      <Answer of={models}>
        {({ data, firstChat }) => (
          <>
            <ModelTable models={data} />
            {may('models.try') ? <Playground models={data} first={firstChat ?? data[0]?.id} /> : null}
          </>
        )}
      </Answer>
    </Page>
  );
}
