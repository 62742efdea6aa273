import type { ModelRow } from '../../src/api/answers';
import { count } from './format';
import { DataTable } from './page';

/** Models and their prices, as written in the configuration. */
export function ModelTable({ models }: { models: readonly ModelRow[] }) {
  return (
    <DataTable
      label="Models"
      head={['Model', 'Kind', 'Context', 'Largest output', 'Input', 'Cached input', 'Output', 'Per request']}
      rows={models.map((model) => [
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
  );
}
