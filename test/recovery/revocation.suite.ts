import { eventually, inForceAfterMs } from '@tollgate/testing';
import { OPERATOR_SECRET, REDIS_USER, type Deployment, type Replicas } from '../services/deployment';
import type { ServiceProcess } from '../services/service-process';
import { Deployed } from './deployed';

const REVOCATION_LIMIT_MS = 1_000;
/** As many as have a credential in memory, in all of which it is revoked. */
export const GATEWAYS = 3;
const ROUNDS = 20;

interface Credential {
  id: string;
  /** Asks a gateway something that needs no other service; 401 once it is revoked. */
  statusAt(gateway: ServiceProcess): Promise<number>;
  revoke(by: ServiceProcess): Promise<Response>;
}

async function ask(url: string, bearer: string, method = 'GET'): Promise<Response> {
  const response = await fetch(url, { method, headers: { authorization: `Bearer ${bearer}` } });
  await response.arrayBuffer();
  return response;
}

/** On gateways that all have the credential in memory. */
export function revocationSuite(deployment: Deployment, replicas: Replicas): void {
  const { kafka } = deployment;
  let deployed: Deployed;
  let tenantId: string;
  let manager: string;

  beforeAll(async () => {
    deployed = new Deployed(deployment, replicas.gateway);
    expect(deployed.gateways).toHaveLength(GATEWAYS);
    tenantId = (await deployed.operator<{ id: string }>('/tenants', { name: 'Acme' })).id;
    manager = (await issueToken(['keys:write'])).token;
  });

  const issueToken = (scopes: string[]) =>
    deployed.operator<{ id: string; token: string }>(`/tenants/${tenantId}/tokens`, { name: 'test', scopes });

  async function key(): Promise<Credential> {
    const { id, key: value } = await deployed.issueKey(tenantId);
    return {
      id,
      statusAt: async ({ addresses }) => (await ask(`${addresses.publicUrl}/v1/models`, value)).status,
      revoke: ({ addresses }) => ask(`${addresses.publicUrl}/_api/v1/keys/${id}`, manager, 'DELETE'),
    };
  }

  async function token(): Promise<Credential> {
    const { id, token: value } = await issueToken(['usage:read']);
    return {
      id,
      // Not its scope: refused before anybody else is asked.
      statusAt: async ({ addresses }) => (await ask(`${addresses.publicUrl}/_api/v1/keys`, value)).status,
      revoke: ({ addresses }) =>
        ask(`${addresses.operatorUrl}/_operator/v1/tenants/${tenantId}/tokens/${id}`, OPERATOR_SECRET, 'DELETE'),
    };
  }

  /** Both in the memory of every gateway. */
  async function issuePair(): Promise<Credential[]> {
    const pair = await Promise.all([key(), token()]);
    for (const credential of pair) {
      for (const gateway of deployed.gateways)
        await eventually(async () => expect([200, 403]).toContain(await credential.statusAt(gateway)));
    }
    return pair;
  }

  /** Milliseconds from now until the gateways refuse it, the last of them. */
  async function refusedEverywhereMs(credential: Credential): Promise<number> {
    const took = deployed.gateways.map((gateway) =>
      inForceAfterMs(async () => expect(await credential.statusAt(gateway)).toBe(401)),
    );
    return Math.max(...(await Promise.all(took)));
  }

  async function measure(
    what: string,
    revoke: (credential: Credential, round: number) => Promise<void>,
  ): Promise<void> {
    // All issued before: Kafka may be away while they are revoked.
    const pairs: Credential[][] = [];
    for (let round = 0; round < ROUNDS; round++) pairs.push(await issuePair());
    return during(what, async () => {
      const took: { key: number[]; token: number[] } = { key: [], token: [] };
      for (const [round, pair] of pairs.entries()) {
        await Promise.all(
          pair.map(async (credential, i) => {
            await revoke(credential, round);
            took[i === 0 ? 'key' : 'token'].push(await refusedEverywhereMs(credential));
          }),
        );
      }
      for (const [kind, ms] of Object.entries(took)) {
        const [max, median] = [Math.max(...ms), ms.toSorted((a, b) => a - b)[ms.length >> 1]!];
        process.stderr.write(
          `revocation of a ${kind} on ${GATEWAYS} gateways, ${what}: max ${max.toFixed()} ms, median ${median.toFixed()} ms of ${ms.length}\n`,
        );
        expect(max).toBeLessThanOrEqual(REVOCATION_LIMIT_MS);
      }
    });
  }

  /** What goes on around a measurement, by its name. */
  async function during(what: string, work: () => Promise<void>): Promise<void> {
    const lost = /notification/.test(what);
    const away = /Kafka/.test(what);
    if (lost) await deployed.redisCli('ACL', 'SETUSER', REDIS_USER.name, 'resetchannels');
    if (away) await kafka.pause();
    try {
      await work();
    } finally {
      if (away) await kafka.unpause();
      if (lost) await deployed.redisCli('ACL', 'SETUSER', REDIS_USER.name, '&tgc:*');
    }
  }

  describe('a revocation, of a credential that three gateways have in memory', () => {
    it.each(['notified', 'every notification lost'])('is in force at all within a second of its answer: %s', (what) =>
      measure(what, async (credential, round) => {
        const answer = await credential.revoke(deployed.gateways[round % GATEWAYS]!);
        expect(answer.status).toBe(204);
      }),
    );

    it.each(['Kafka away', 'Kafka away and every notification lost'])(
      'is in force at all within a second of its commit, projected or not: %s',
      (what) =>
        measure(what, async ({ id }) => {
          const rows = await deployed.query(
            'UPDATE auth.credential SET revoked_at = now(), version = version + 1 WHERE id = $1 RETURNING id',
            [id],
          );
          expect(rows).toHaveLength(1);
        }),
    );
  });
}
