import { SERVICES, type Service } from './services';
import type { Subject } from './subjects';
import { TOPICS, type RequestService, type Topic, type TopicDefinition } from './topics';

/**
 * The services that may request each subject. Together with `producers` and `groups` of TOPICS, this is the only table
 * of who may send what. Signatures of messages and rights at the brokers follow it: a message of any other service
 * counts as forged. A subject's own service answers it.
 */
export const ASKERS: Readonly<Record<Subject, readonly Service[]>> = {
  'auth.tenants.create': ['gateway'],
  'auth.tenants.list': ['gateway'],
  'auth.tenants.get': ['gateway', 'billing'],
  'auth.tenants.setStatus': ['gateway'],
  'auth.tenants.update': ['gateway'],
  'auth.tenants.close': ['gateway'],
  'auth.tenants.erase': ['gateway'],
  'auth.keys.list': ['gateway'],
  'auth.keys.create': ['gateway'],
  'auth.keys.get': ['gateway', 'billing'],
  'auth.keys.names': ['gateway'],
  'auth.keys.update': ['gateway'],
  'auth.keys.rotate': ['gateway'],
  'auth.keys.apply': ['gateway'],
  'auth.keys.revoke': ['gateway'],
  'auth.keys.used': ['gateway'],
  'auth.tokens.list': ['gateway'],
  'auth.tokens.create': ['gateway'],
  'auth.tokens.revoke': ['gateway'],
  'auth.tokens.used': ['gateway'],
  'auth.operators.list': ['gateway'],
  'auth.operators.create': ['gateway'],
  'auth.operators.revoke': ['gateway'],
  'auth.operators.use': ['gateway'],
  'auth.audit.list': ['gateway'],

  'metering.usage.query': ['gateway'],
  // Every service with an admission store asks for what the store has lost.
  'metering.spent': ['gateway', 'billing'],
  'metering.usage.events': ['gateway'],
  'metering.requests.named': ['gateway'],
  'metering.requests.list': ['gateway'],
  'metering.usage.series': ['gateway'],
  'metering.refusals.report': ['gateway'],
  'metering.refusals.series': ['gateway'],
  'metering.usage.export': ['gateway'],
  'metering.events.digest': ['billing'],
  'metering.events.list': ['billing'],
  'metering.rollups.audit': ['billing'],
  'metering.rejected.audit': ['billing'],
  'auth.backends.drained': ['gateway'],
  'auth.backends.drain': ['gateway'],
  'auth.backends.enable': ['gateway'],

  'metering.backends.unbilled': ['gateway'],
  'metering.backends.compare': ['gateway'],
  'metering.backends.report': ['gateway'],
  'metering.fleet': ['gateway'],
  'metering.prices.list': ['gateway'],

  'billing.summary': ['gateway'],
  'billing.credit.spendable': ['gateway'],
  'billing.credit.state': ['gateway'],
  'billing.fleet': ['gateway'],
  'billing.tenants.balances': ['gateway'],
  'billing.entries.list': ['gateway'],
  // Billing also sends this to itself, because its admission store works like that of every service.
  'billing.credit.news': ['gateway', 'billing'],
  'billing.credit.add': ['gateway'],
  'billing.credit.refund': ['gateway'],
  'billing.credit.adjust': ['gateway'],
  'billing.reconcile.start': ['gateway'],
  'billing.reconcile.get': ['gateway'],
  'billing.reconcile.latest': ['gateway'],
  'billing.budget.set': ['gateway'],
  'billing.budget.get': ['gateway'],
  'billing.budget.keys': ['gateway'],
  'billing.entry.requests': ['gateway'],
  'billing.request.entry': ['gateway'],
  'billing.tenants.tell': ['auth'],
  'billing.tenants.repair': ['gateway'],
  'billing.journal.heads': ['gateway'],
  'billing.journal.compare': ['gateway'],
  'billing.audit.list': ['gateway'],
  'billing.invoices.list': ['gateway'],
  'billing.invoices.get': ['gateway'],
  'billing.invoices.close': ['gateway'],
  'billing.invoices.void': ['gateway'],
};

/** The service that answers a subject. */
export const serviceOf = (subject: Subject): RequestService => subject.split('.', 1)[0] as RequestService;

/** The services that may send any request to a service. They write its topic of requests, and get its replies. */
export function askersOf(service: RequestService): Service[] {
  const subjects = (Object.keys(ASKERS) as Subject[]).filter((subject) => serviceOf(subject) === service);
  return SERVICES.filter((asker) => subjects.some((subject) => ASKERS[subject].includes(asker)));
}

/** The services that consume a topic. Each message is for all of them. */
export const consumersOf = ({ groups }: TopicDefinition): Service[] =>
  SERVICES.filter((service) => Object.values(groups).includes(service));

/** A direction: `from` sends messages to `to`. */
export interface ServicePair {
  from: Service;
  to: Service;
}

/** Every pair of services with messages between them, including replies; ordered, each once. */
export function servicePairs(): ServicePair[] {
  const pairs = new Set<string>();
  const add = (from: Service, to: Service) => pairs.add(`${from} ${to}`);
  for (const topic of Object.keys(TOPICS) as Topic[])
    for (const from of TOPICS[topic].producers) for (const to of consumersOf(TOPICS[topic])) add(from, to);
  for (const subject of Object.keys(ASKERS) as Subject[])
    for (const asker of ASKERS[subject]) {
      add(asker, serviceOf(subject));
      add(serviceOf(subject), asker);
    }
  return SERVICES.flatMap((from) => SERVICES.map((to) => ({ from, to }))).filter(({ from, to }) =>
    pairs.has(`${from} ${to}`),
  );
}
