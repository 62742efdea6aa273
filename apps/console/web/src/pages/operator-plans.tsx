import { Code, ScrollArea, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Configuration, Limits } from '../../../src/api/answers';
import { api } from '../backend/api';
import { count, Money, Time } from '../parts/format';
import { ModelTable } from '../usage/model-table';
import { Answer, DataTable, Page } from '../parts/page';

/** A long configuration scrolls by itself. */
const WHOLE_HEIGHT = 480;
const INDENT = 2;
/** Femtos a token are nanos a million tokens. */
const perMillion = (femtos: string): bigint => BigInt(femtos);

/** Operator → Plans and prices: the configuration as it is in force. */
export function OperatorPlansPage() {
  const configuration = useQuery({
    queryKey: ['operator', 'configuration'],
    queryFn: () => api.get<Configuration>('/operator/configuration'),
  });
  return (
    <Page
      title="Plans and prices"
      about="From tollgate.yaml, as it is in force. A change of the file is in force about a second later."
    >
      <Answer of={configuration}>{(data) => <InForce of={data} />}</Answer>
    </Page>
  );
}

function InForce({ of: { plans, models, currency, thresholdsPercent, history, whole } }: { of: Configuration }) {
  const budget = (cents: number | null) => (cents === null ? 'none' : <Money cents={cents} currency={currency} />);
  const limits = ({ requestsPerMinute, tokensPerMinute, concurrency }: Limits) =>
    [requestsPerMinute, tokensPerMinute, concurrency].map((value) => <span className="figures">{count(value)}</span>);
  return (
    <>
      <Title order={2} size="h4">
        Plans
      </Title>
      <DataTable
        label="Plans"
        head={['Plan', 'Profile', 'Models', '#Requests a minute', '#Tokens a minute', '#At once', '#Budget a month']}
        rows={plans.flatMap((plan) => [
          [plan.id, 'all keys of a tenant', '–', ...limits(plan.limits), budget(plan.monthlyBudgetCents)],
          ...plan.profiles.map((profile) => [
            plan.id,
            profile.id,
            profile.models.join(', '),
            ...limits(profile.limits),
            budget(profile.monthlyBudgetCents),
          ]),
        ])}
      />
      <Title order={2} size="h4">
        Prices in {currency} per million tokens
      </Title>
      <ModelTable models={models} />
      <Title order={2} size="h4">
        Former and present prices
      </Title>
      <DataTable
        label="Versions of prices"
        head={['Model', 'Version', '#Input', '#Cached input', '#Output', '#Per request', 'First seen (UTC)']}
        rows={history.map((price) => [
          price.model,
          price.version,
          <Money nanos={perMillion(price.inputFemtos)} />,
          <Money nanos={perMillion(price.cachedInputFemtos)} />,
          <Money nanos={perMillion(price.outputFemtos)} />,
          <Money nanos={price.requestNanos} />,
          <Time at={price.firstSeenAt} />,
        ])}
      />
      <Title order={2} size="h4">
        Thresholds of budgets
      </Title>
      <DataTable label="Thresholds" head={['Percent']} rows={thresholdsPercent.map((percent) => [`${percent} %`])} />
      <Title order={2} size="h4">
        The whole configuration
      </Title>
      <Text size="sm">
        As JSON, with what the file leaves to its defaults. Secrets are blanked. A console that does not read them
        leaves their fields out.
      </Text>
      <ScrollArea.Autosize
        mah={WHOLE_HEIGHT}
        type="auto"
        viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': 'The whole configuration' }}
      >
        <Code block className="secret">
          {JSON.stringify(whole, null, INDENT)}
        </Code>
      </ScrollArea.Autosize>
    </>
  );
}
