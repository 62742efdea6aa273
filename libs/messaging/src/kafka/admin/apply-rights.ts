import { TOPICS } from '@tollgate/contracts';
import {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  ResourcePatternTypes,
  type AclEntry,
  type Admin,
} from 'kafkajs';
import { delay } from '@tollgate/runtime';
import { withAdmin, type TopicsOptions } from './apply-topics';
import type { KafkaConnection } from '../client/connection';
import { errorTypeOf, isRefused, RightMissingError } from '../client/rights';
import { DEFAULT_PRINCIPALS, planRights, textOf, type Principals, type Right } from './rights-plan';
import { Names } from './topic-plan';

const APPLY_TIMEOUT_MS = 60_000;
const SETTLE_POLL_MS = 50;
const EVERY_RESOURCE = '*';

export interface RightsOptions extends Omit<TopicsOptions, 'service'> {
  /** The brokers' name for each service's user; `User:<service>` when absent. */
  principals?: Principals;
}

/** `missing` and `granted` rights are in the table; `surplus` and `taken` rights are not. */
export type RightState = 'there' | 'missing' | 'granted' | 'surplus' | 'taken' | 'unknown';
export interface FoundRight {
  right: string;
  state: RightState;
}

/**
 * Grants each service's user the rights of the tables, and revokes those that the tables no longer have. Safe to
 * repeat. Leaves alone what is forbidden (DENY), other users' rights, and rights to names of other installations
 * (another prefix). Undefined when the brokers check no rights.
 */
export async function applyRights(
  connection: KafkaConnection,
  options: RightsOptions = {},
): Promise<FoundRight[] | undefined> {
  return withAdmin(connection, APPLY_TIMEOUT_MS, async (admin) => {
    const compared = await compare(admin, options);
    if (!compared) return undefined;
    const { missing, surplus } = compared;
    try {
      if (missing.length > 0) await admin.createAcls({ acl: missing.map(({ entry }) => entry) });
      if (surplus.length > 0) await admin.deleteAcls({ filters: surplus.map(({ entry }) => entry) });
    } catch (error) {
      throw isRefused(error) ? new RightMissingError(`ALTER on the cluster (${TO_SET})`, error) : error;
    }
    // The brokers apply new rights somewhat later than they list them.
    for (let settled = missing.length + surplus.length === 0; !settled; await delay(SETTLE_POLL_MS)) {
      const now = await compare(admin, options);
      settled = !now || now.missing.length + now.surplus.length === 0;
    }
    return [...stated(compared.there, 'there'), ...stated(missing, 'granted'), ...stated(surplus, 'taken')];
  });
}

/**
 * What `applyRights` would do, without changing anything. Without the right to list rights, or on brokers that check
 * none, it returns the necessary rights.
 */
export async function findRights(connection: KafkaConnection, options: RightsOptions = {}): Promise<FoundRight[]> {
  return withAdmin(connection, APPLY_TIMEOUT_MS, async (admin) => {
    const compared = await compare(admin, options).catch((error: unknown) => {
      if (error instanceof RightMissingError) return undefined;
      throw error;
    });
    if (!compared) return stated(wantedBy(options), 'unknown');
    return [
      ...stated(compared.there, 'there'),
      ...stated(compared.missing, 'missing'),
      ...stated(compared.surplus, 'surplus'),
    ];
  });
}

const TO_SET = 'to set rights; --no-rights leaves them alone';

interface Known {
  text: string;
  entry: AclEntry;
}

const stated = (rights: readonly Known[], state: RightState): FoundRight[] =>
  rights.map(({ text }) => ({ right: text, state }));

const wantedBy = ({ topics = TOPICS, topicPrefix = '', principals }: RightsOptions): Known[] =>
  planRights(topics, new Names(topicPrefix), principals).map((right) => ({
    text: textOf(right),
    entry: entryOf(right),
  }));

/** Undefined when the brokers check no rights. */
async function compare(
  admin: Admin,
  options: RightsOptions,
): Promise<{ there: Known[]; missing: Known[]; surplus: Known[] } | undefined> {
  const { topicPrefix = '', principals = DEFAULT_PRINCIPALS } = options;
  const wanted = new Map(wantedBy(options).map((known) => [keyOf(known.entry), known]));
  const found = new Map<string, Known>();
  for (const principal of new Set(Object.values(principals))) {
    const entries = await entriesOf(admin, principal);
    if (!entries) return undefined;
    for (const entry of entries)
      if (touches(entry, topicPrefix)) found.set(keyOf(entry), { text: shown(entry), entry });
  }
  return {
    there: [...wanted].filter(([key]) => found.has(key)).map(([, known]) => known),
    missing: [...wanted].filter(([key]) => !found.has(key)).map(([, known]) => known),
    surplus: [...found].filter(([key]) => !wanted.has(key)).map(([, known]) => known),
  };
}

async function entriesOf(admin: Admin, principal: string): Promise<AclEntry[] | undefined> {
  try {
    const { resources } = await admin.describeAcls({
      principal,
      resourceType: AclResourceTypes.ANY,
      resourcePatternType: ResourcePatternTypes.ANY,
      operation: AclOperationTypes.ANY,
      permissionType: AclPermissionTypes.ALLOW,
    });
    return resources.flatMap(({ acls, resourceType, resourceName, resourcePatternType }) =>
      acls.map((acl) => ({ ...acl, resourceType, resourceName, resourcePatternType })),
    );
  } catch (error) {
    if (errorTypeOf(error) === 'SECURITY_DISABLED') return undefined;
    throw isRefused(error) ? new RightMissingError(`DESCRIBE on the cluster (${TO_SET})`, error) : error;
  }
}

/** Whether a right concerns something of this installation, so that the table decides about it. */
function touches({ resourceName, resourcePatternType }: AclEntry, prefix: string): boolean {
  if (resourceName.startsWith(prefix) || resourceName === EVERY_RESOURCE) return true;
  return resourcePatternType === ResourcePatternTypes.PREFIXED && prefix.startsWith(resourceName);
}

function entryOf({ principal, operation, resource, name, prefixed }: Right): AclEntry {
  return {
    principal,
    host: '*',
    operation: AclOperationTypes[operation],
    permissionType: AclPermissionTypes.ALLOW,
    resourceType: resource === 'topic' ? AclResourceTypes.TOPIC : AclResourceTypes.GROUP,
    resourceName: name,
    resourcePatternType: prefixed ? ResourcePatternTypes.PREFIXED : ResourcePatternTypes.LITERAL,
  };
}

const keyOf = (entry: AclEntry): string =>
  JSON.stringify([
    entry.principal,
    entry.host,
    entry.operation,
    entry.resourceType,
    entry.resourceName,
    entry.resourcePatternType,
  ]);

function shown(entry: AclEntry): string {
  const nameOf = (type: object, value: number) =>
    Object.entries(type).find(([, each]) => each === value)?.[0] ?? String(value);
  const { principal, host, resourceName: name } = entry;
  const operation = nameOf(AclOperationTypes, entry.operation);
  const resource = nameOf(AclResourceTypes, entry.resourceType).toLowerCase();
  const prefixed = entry.resourcePatternType === ResourcePatternTypes.PREFIXED;
  const from = host === '*' ? '' : ` from ${host}`;
  return `${principal} may ${operation} ${resource} "${name}${prefixed ? '*' : ''}"${from}`;
}
