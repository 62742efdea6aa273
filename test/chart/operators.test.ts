import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { componentIn, manifests, only, ROOT } from './manifests';

/** The namespace of the release, in which the custom resources are as well. */
const NAMESPACE = 'tollgate';
/** Connections that the server keeps for itself and for its operator. */
const RESERVED_CONNECTIONS = 10;

interface Resource {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Record<string, string> };
  spec: Record<string, unknown>;
  data?: Record<string, string>;
}
interface Listener {
  name: string;
  port: number;
  tls: boolean;
  authentication: { type: string; listenerConfig?: Record<string, string> };
  networkPolicyPeers?: { podSelector: { matchLabels: Record<string, string> } }[];
}
interface Values {
  secrets: Record<string, string>;
  kafka: {
    brokers: string;
    saslMechanism: string;
    admin: { brokers: string; saslMechanism: string; username: string };
  };
  postgres: { host: string; database: string; adminUsername: string };
  redis: { settledReplicas: number };
  jobs: { topics: { replicationFactor: number } };
  networkPolicy: Record<'postgres' | 'kafka' | 'redis', { peers: object[]; ports: number[]; adminPorts?: number[] }>;
}

const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const ha = textOf('deploy/chart/values-ha.yaml');
/** The lines that its `sed` prints. */
const pasted = ha
  .split('\n')
  .filter((line) => line.startsWith('#   '))
  .map((line) => line.slice('#   '.length))
  .join('\n');
const resources = parseAllDocuments(pasted).map((document) => {
  expect(document.errors).toEqual([]);
  return document.toJS() as Resource;
});
const resource = (kind: string, name?: string): Resource => {
  const found = resources.filter((each) => each.kind === kind && (name === undefined || each.metadata.name === name));
  expect({ kind, name, found: found.length }).toEqual({ kind, name, found: 1 });
  return found[0]!;
};
const merged = (below: object, above: object): object =>
  Object.entries(above).reduce<Record<string, unknown>>(
    (all, [name, value]: [string, unknown]) => {
      const former = all[name];
      const isMap = (each: unknown): each is object =>
        typeof each === 'object' && each !== null && !Array.isArray(each);
      return { ...all, [name]: isMap(former) && isMap(value) ? merged(former, value) : value };
    },
    { ...below },
  );
const values = merged(parse(textOf('deploy/chart/values.yaml')) as object, parse(ha) as object) as Values;

describe('the custom resources of values-ha.yaml', () => {
  it('are those of three operators and of the certificates of Redis', () => {
    expect(resources.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`)).toEqual([
      'postgresql.cnpg.io/v1 Cluster',
      'kafka.strimzi.io/v1 KafkaNodePool',
      'kafka.strimzi.io/v1 Kafka',
      'v1 ConfigMap',
      'cert-manager.io/v1 Issuer',
      'cert-manager.io/v1 Certificate',
      'cert-manager.io/v1 Issuer',
      'cert-manager.io/v1 Certificate',
      'redis.redis.opstreelabs.in/v1beta2 RedisCluster',
    ]);
  });

  it('name the authorities that services must know', () => {
    const [database, kafka] = [resource('Cluster').metadata.name, resource('Kafka').metadata.name];
    const { secretName } = resource('Certificate', 'tollgate-redis').spec as { secretName: string };
    for (const name of [`${database}-ca`, `${kafka}-cluster-ca-cert`, secretName]) expect(ha).toContain(name);
  });

  describe('PostgreSQL', () => {
    const { metadata, spec } = resource('Cluster');

    it('is the server of the values, with the database and a superuser for the job roles', () => {
      expect(values.postgres).toMatchObject({ host: `${metadata.name}-rw`, adminUsername: 'postgres' });
      expect(spec).toMatchObject({
        enableSuperuserAccess: true,
        bootstrap: { initdb: { database: values.postgres.database } },
      });
      expect(values.networkPolicy.postgres.peers).toEqual([
        { podSelector: { matchLabels: { 'cnpg.io/cluster': metadata.name } } },
      ]);
    });

    it('has a connection for each that the logins may open', () => {
      const limits = [...textOf('deploy/postgres/roles.sql').matchAll(/CONNECTION LIMIT (\d+)/g)].map(([, n]) =>
        Number(n),
      );
      expect(limits.length).toBeGreaterThan(4);
      const allowed = limits.reduce((sum, limit) => sum + limit, 0);
      const { max_connections: most } = (spec['postgresql'] as { parameters: Record<string, string> }).parameters;
      expect(Number(most)).toBeGreaterThanOrEqual(allowed + RESERVED_CONNECTIONS);
      expect(ha).toContain(`may have ${allowed} connections`);
    });
  });

  describe('Kafka', () => {
    const { metadata, spec } = resource('Kafka');
    const kafka = spec['kafka'] as {
      listeners: Listener[];
      authorization: { superUsers: string[] };
      config: Record<string, number>;
      template: {
        kafkaContainer: { env: { name: string; valueFrom: { secretKeyRef: { name: string; key: string } } }[] };
      };
    };
    const listener = (name: string) => kafka.listeners.find((each) => each.name === name)!;
    const bootstrap = `${metadata.name}-kafka-bootstrap.${NAMESPACE}.svc`;

    it('listens where services sign in, as the users that the job topics makes', () => {
      const { port, tls, authentication } = listener('clients');
      expect({ tls, type: authentication.type }).toEqual({ tls: true, type: values.kafka.saslMechanism });
      expect(values.kafka.brokers).toBe(`${bootstrap}:${port}`);
      expect(values.networkPolicy.kafka).toMatchObject({
        peers: [{ podSelector: { matchLabels: { 'strimzi.io/cluster': metadata.name } } }],
        ports: [port],
      });
    });

    it('listens where only the job topics signs in, as the one superuser', () => {
      const { port, tls, authentication, networkPolicyPeers } = listener('admin');
      const { admin } = values.kafka;
      expect({ tls, mechanism: authentication.listenerConfig!['sasl.enabled.mechanisms'] }).toEqual({
        tls: true,
        mechanism: admin.saslMechanism.toUpperCase(),
      });
      expect([admin.brokers, kafka.authorization.superUsers]).toEqual([`${bootstrap}:${port}`, [admin.username]]);
      const job = only('ha', 'Job', 'topics').spec['template'] as { metadata: { labels: Record<string, string> } };
      expect(job.metadata.labels).toMatchObject(networkPolicyPeers![0]!.podSelector.matchLabels);
    });

    it('reads the sign-in of the administrator from the Secret of the job', () => {
      const [variable] = kafka.template.kafkaContainer.env;
      expect(listener('admin').authentication.listenerConfig!['plain.sasl.jaas.config']).toBe(
        `\${strimzienv:${variable!.name}}`,
      );
      expect(variable!.valueFrom.secretKeyRef).toEqual({ name: values.secrets['kafkaAdmin'], key: 'broker-jaas' });
    });

    it('has as many nodes as topics have copies', () => {
      const pool = resource('KafkaNodePool');
      expect(pool.metadata.labels).toEqual({ 'strimzi.io/cluster': metadata.name });
      expect(pool.spec).toMatchObject({ roles: ['controller', 'broker'] });
      expect(pool.spec['replicas']).toBe(values.jobs.topics.replicationFactor);
      expect(kafka.config['min.insync.replicas']).toBe(values.jobs.topics.replicationFactor - 1);
    });

    it('is reached by services and by the job at the port of each alone', () => {
      const ports = manifests('ha')
        .filter(({ kind }) => kind === 'NetworkPolicy')
        .flatMap(({ spec: policy }) => {
          const { podSelector, egress = [] } = policy as unknown as {
            podSelector: { matchLabels: Record<string, string> };
            egress?: { ports: { port: number }[] }[];
          };
          const toKafka = egress
            .flatMap(({ ports: all }) => all.map(({ port }) => port))
            .filter((port) => port > 9_092 && port < 9_095);
          return toKafka.map((port) => [componentIn(podSelector)!, port] as const);
        });
      expect(new Map(ports)).toEqual(
        new Map([
          ['auth', 9_093],
          ['billing', 9_093],
          ['console', 9_093],
          ['gateway', 9_093],
          ['metering', 9_093],
          ['topics', 9_094],
        ]),
      );
      expect(ports).toHaveLength(6);
    });
  });

  describe('Redis', () => {
    const { metadata, spec } = resource('RedisCluster');
    const { name } = metadata;
    const node = (role: 'redisLeader' | 'redisFollower') =>
      spec[role] as { replicas: number; redisConfig: { additionalRedisConfig: string } };

    it('has a certificate for the address in the URLs and for the names that its nodes announce', () => {
      const certificate = resource('Certificate', name).spec as { secretName: string; dnsNames: string[] };
      const [, host] = /rediss\+cluster:\/\/[^@]+@([^:]+):6379\?ca=\/etc\/tollgate\/ca\/ca\.crt/.exec(ha)!;
      expect(host).toBe(`${name}-leader.${NAMESPACE}.svc`);
      const headless = (role: string) => `*.${name}-${role}-headless.${NAMESPACE}.svc.cluster.local`;
      expect(certificate.dnsNames).toEqual([host, headless('leader'), headless('follower')]);
      expect(spec).toMatchObject({ TLS: { secret: { secretName: certificate.secretName } }, clusterVersion: 'v8' });
      const [root, own] = ['tollgate-redis-ca', name].map((each) => resource('Certificate', each).spec);
      expect(resource('Issuer', (root!['issuerRef'] as { name: string }).name).spec).toEqual({ selfSigned: {} });
      expect(resource('Issuer', (own!['issuerRef'] as { name: string }).name).spec).toEqual({
        ca: { secretName: root!['secretName'] },
      });
    });

    it('writes each settlement to disk, and evicts nothing', () => {
      for (const role of ['redisLeader', 'redisFollower'] as const)
        expect(node(role).redisConfig.additionalRedisConfig).toBe(name);
      const text = resource('ConfigMap', name).data!['redis-additional.conf']!;
      expect(text.split('\n')).toEqual(
        expect.arrayContaining(['appendfsync always', 'maxmemory-policy noeviction', 'save ""']),
      );
    });

    it('has one replica more for each shard than a settlement needs', () => {
      const each = node('redisFollower').replicas / node('redisLeader').replicas;
      expect(each).toBe(values.redis.settledReplicas + 1);
    });

    it('is what the policies let services reach', () => {
      expect(values.networkPolicy.redis).toEqual({
        peers: [
          {
            podSelector: {
              matchExpressions: [{ key: 'app', operator: 'In', values: [`${name}-leader`, `${name}-follower`] }],
            },
          },
        ],
        ports: [6_379],
      });
    });
  });
});
