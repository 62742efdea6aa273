import { useQuery } from '@tanstack/react-query';
import type { ModelRow } from '../../../src/api/answers';
import { api } from '../api';
import { usePerson, useTenant } from '../me';
import { ModelTable } from '../model-table';
import { Answer, Page } from '../page';

/** The catalog with its prices, as written in the configuration. */
export function ModelsPage() {
  const { id, path } = useTenant();
  const { currency } = usePerson();
  const models = useQuery({
    queryKey: ['models', id],
    queryFn: () => api.get<{ data: ModelRow[] }>(path('models')),
  });
  return (
    <Page
      title="Models"
      about={`Prices are in ${currency} per million tokens. A key's profile may allow fewer models.`}
    >
      <Answer of={models}>{({ data }) => <ModelTable models={data} />}</Answer>
    </Page>
  );
}
