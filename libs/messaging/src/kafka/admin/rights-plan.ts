import {
  askersOf,
  consumersOf,
  REQUEST_TOPICS,
  SERVICES,
  type RequestService,
  type RequestTopic,
  type Service,
  type Topic,
} from '@tollgate/contracts';
import { requestTopic, type Names, type Topics } from './topic-plan';

/** A right of a service's user at the brokers. READ, WRITE and DELETE include DESCRIBE. */
export interface Right {
  /** The brokers' name for the user: `User:gateway`. */
  principal: string;
  operation: 'READ' | 'WRITE' | 'DELETE' | 'DESCRIBE_CONFIGS';
  resource: 'topic' | 'group';
  name: string;
  /** True: all resources with this prefix. False: the one of this name. */
  prefixed: boolean;
}

/** The user of each service at the brokers. */
export type Principals = Readonly<Record<Service, string>>;
export const DEFAULT_PRINCIPALS = Object.fromEntries(
  SERVICES.map((service) => [service, `User:${service}`]),
) as unknown as Principals;

const REQUEST_SERVICES = Object.keys(REQUEST_TOPICS)
  .filter((topic) => topic !== 'replies')
  .map((topic) => topic.slice('requests.'.length)) as RequestService[];

/**
 * The least rights of each service, from the tables of producers, groups, subjects and askers. A new entry there needs
 * no change here.
 */
export function planRights(topics: Topics, names: Names, principals: Principals = DEFAULT_PRINCIPALS): Right[] {
  return SERVICES.flatMap((service) => rightsOf(service, topics, names, principals[service]));
}

/** The topics that a service uses, and checks at its start. */
export function topicsOf(service: Service, topics: Topics, names: Names): Set<string> {
  const rights = rightsOf(service, topics, names, '');
  return new Set(rights.filter(({ resource }) => resource === 'topic').map(({ name }) => name));
}

function rightsOf(service: Service, topics: Topics, names: Names, principal: string): Right[] {
  const rights: Right[] = [];
  const add = (operation: Right['operation'], resource: Right['resource'], name: string, prefixed = false) =>
    rights.push({ principal, operation, resource, name, prefixed });
  /** The start checks the topic's settings. */
  const addTopic = (name: string, { reads, writes }: { reads: boolean; writes: boolean }) => {
    if (reads) add('READ', 'topic', name);
    if (writes) add('WRITE', 'topic', name);
    if (reads || writes) add('DESCRIBE_CONFIGS', 'topic', name);
  };

  for (const topic of Object.keys(topics) as Topic[]) {
    const consumes = consumersOf(topics[topic]).includes(service);
    addTopic(names.topic(topic), { reads: consumes, writes: topics[topic].producers.includes(service) });
    // A consumer writes what it quarantines. Only an administrator may read it.
    addTopic(names.dead(topic), { reads: false, writes: consumes });
    for (const [group, owner] of Object.entries(topics[topic].groups))
      if (owner === service) add('READ', 'group', names.group(topic, group));
  }
  for (const answerer of REQUEST_SERVICES) {
    const topic: RequestTopic = requestTopic(answerer);
    const answers = answerer === service;
    addTopic(names.topic(topic), { reads: answers, writes: askersOf(answerer).includes(service) });
    if (answers) add('READ', 'group', names.handlers(answerer));
  }
  // Each replica asks for the brokers' time with its own record in the replies.
  addTopic(names.topic('replies'), { reads: true, writes: true });
  // A replica removes its own group when it stops. The brokers refuse to remove a group in use. These groups keep no
  // offsets, so their removal loses nothing.
  for (const operation of ['READ', 'DELETE'] as const) add(operation, 'group', names.replyGroups(service), true);
  return rights;
}

/** E.g. `User:gateway may WRITE topic "usage-events"`. */
export const textOf = ({ principal, operation, resource, name, prefixed }: Right): string =>
  `${principal} may ${operation} ${resource} "${name}${prefixed ? '*' : ''}"`;
