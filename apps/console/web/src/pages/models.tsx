import { useQuery } from '@tanstack/react-query';
import type { ModelRow } from '../../../src/api/answers';
import { api } from '../api';
import { count } from '../format';
import { usePerson, useTenant } from '../me';
import { Answer, DataTable, Page } from '../page';

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
      <Answer of={models}>
        {({ data }) => (
          <DataTable
            label="Models"
            head={['Model', 'Kind', 'Context', 'Largest output', 'Input', 'Cached input', 'Output', 'Per request']}
            rows={data.map((model) => [
              model.id,
              model.kind,
              count(model.contextTokens),
              model.kind === 'chat' ? count(model.maxOutputTokens) : '–',
              <span className="figures">{model.price.input}</span>,
              <span className="figures">{model.price.cachedInput ?? model.price.input}</span>,
              <span className="figures">{model.kind === 'chat' ? model.price.output : '–'}</span>,
              <span className="figures">{model.price.request}</span>,
            ])}
          />
        )}
      </Answer>
    </Page>
  );
}
