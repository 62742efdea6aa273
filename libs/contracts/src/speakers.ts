import { SERVICES, type Service } from './services';
import type { Subject } from './subjects';
import { TOPICS, type RequestService, type Topic, type TopicDefinition } from './topics';

/**
 * The services that may request each subject. Together with `producers` and `groups` of TOPICS, this is the only table
 * of who may send what. Signatures of messages and rights at the brokers follow it: a message of any other service
 * counts as forged. A subject's own service answers it.
 */
export const ASKERS: Readonly<Record<Subject, readonly Service[]>> = {
  'auth.tenants.create': ['gateway', 'console'],
  'auth.tenants.list': ['gateway', 'console'],
  'auth.tenants.get': ['gateway', 'billing', 'console'],
  'auth.tenants.names': ['console'],
  'auth.tenants.setStatus': ['gateway', 'console'],
  'auth.tenants.update': ['gateway'],
  'auth.tenants.close': ['gateway'],
  'auth.tenants.erase': ['gateway'],
  'auth.keys.list': ['gateway', 'console'],
  'auth.keys.create': ['gateway', 'console'],
  'auth.keys.get': ['gateway', 'billing', 'console'],
  'auth.keys.find': ['gateway'],
  'auth.keys.names': ['gateway', 'console'],
  'auth.keys.update': ['gateway', 'console'],
  'auth.keys.rotate': ['gateway', 'console'],
  'auth.keys.apply': ['gateway'],
  'auth.keys.revoke': ['gateway', 'console'],
  'auth.keys.used': ['gateway'],
  'auth.tokens.list': ['gateway', 'console'],
  'auth.tokens.create': ['gateway', 'console'],
  'auth.tokens.revoke': ['gateway', 'console'],
  'auth.tokens.used': ['gateway'],
  'auth.operators.list': ['gateway'],
  'auth.operators.create': ['gateway'],
  'auth.operators.revoke': ['gateway'],
  'auth.operators.use': ['gateway'],
  'auth.audit.list': ['gateway', 'console'],
  'auth.audit.record': ['console'],
  'auth.people.erase': ['console'],

  'metering.usage.query': ['gateway'],
  // Every service with an admission store asks for what the store has lost.
  'metering.spent': ['gateway', 'billing'],
  'metering.usage.events': ['gateway'],
  'metering.requests.named': ['gateway'],
  'metering.requests.list': ['console'],
  'metering.usage.series': ['console'],
  'metering.refusals.report': ['gateway'],
  'metering.refusals.series': ['gateway', 'console'],
  'metering.requests.explain': ['gateway', 'console'],
  'metering.refusals.newest': ['gateway'],
  'metering.usage.export': ['gateway'],
  'metering.events.digest': ['billing'],
  'metering.events.list': ['billing'],
  'metering.rollups.audit': ['billing'],
  'metering.rejected.audit': ['billing'],
  'metering.months.list': ['billing'],
  'metering.months.confirm': ['billing'],
  'auth.config.check': ['gateway'],
  'auth.backends.drained': ['gateway', 'console'],
  'auth.backends.drain': ['gateway'],
  'auth.backends.enable': ['gateway'],

  'metering.backends.unbilled': ['gateway'],
  'metering.backends.compare': ['gateway'],
  'metering.backends.report': ['gateway'],
  'metering.fleet': ['console'],
  'metering.prices.list': ['console'],

  'billing.config.check': ['gateway'],
  'billing.summary': ['gateway', 'console'],
  'billing.credit.spendable': ['gateway'],
  'billing.credit.state': ['gateway', 'console'],
  'billing.fleet': ['console'],
  'billing.tenants.balances': ['console'],
  // Billing also sends this to itself, because its admission store works like the store of every service.
  'billing.credit.news': ['gateway', 'billing'],
  'billing.credit.add': ['gateway', 'console'],
  'billing.credit.refund': ['gateway', 'console'],
  'billing.credit.adjust': ['gateway', 'console'],
  'billing.reconcile.start': ['gateway', 'console'],
  'billing.reconcile.get': ['gateway', 'console'],
  'billing.reconcile.latest': ['console'],
  'billing.budget.set': ['gateway', 'console'],
  'billing.budget.get': ['gateway', 'console'],
  'billing.budget.of': ['console'],
  'billing.budget.keys': ['gateway', 'console'],
  'billing.entry.requests': ['gateway', 'console'],
  'billing.request.entry': ['gateway', 'console'],
  'billing.request.hold': ['gateway'],
  'billing.tenants.tell': ['auth'],
  'billing.tenants.repair': ['gateway'],
  'billing.journal.heads': ['gateway'],
  'billing.journal.compare': ['gateway'],
  'billing.audit.list': ['gateway', 'console'],
  'billing.tenants.erase': ['auth'],
  'billing.people.erase': ['console'],
  'billing.invoices.list': ['gateway', 'console'],
  'billing.invoices.get': ['console'],
  'billing.invoices.close': ['gateway'],
  'billing.invoices.void': ['gateway'],

  'console.operators.invite': ['gateway'],
  'console.operators.remove': ['gateway'],
  'console.people.recover': ['gateway'],
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
