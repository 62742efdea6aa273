// The capacity model: what a load takes of each part, from the measured unit costs. Pure functions over the numbers of
// unit-costs.json and the assumptions below. docs/operating/capacity.md explains them, and has the table.

/** What the model assumes. Each is a choice or a property of the design, not a measurement. */
export const ASSUMPTIONS = {
  /** The share of a core that a process uses at the peak. The rest is for bursts and for the loss of a replica. */
  usableShare: 0.6,
  /** The mean over a month, as a share of the peak. */
  meanOfPeak: 0.5,
  /** The share of streamed requests, their chunks, and how long one lasts. */
  streamShare: 0.5,
  streamChunks: 250,
  streamSeconds: 10,
  plainSeconds: 3,
  /** The largest share of all requests that one tenant sends. A tenant is in one shard. */
  largestTenantShare: 0.1,
  keysPerTenant: 3,
  /** The share of tenants that send requests in the busiest second. */
  activeTenantShare: 0.1,
  /** For availability, whatever the load. */
  leastReplicas: 2,
  secondsOfMonth: 30 * 86_400,
  /** A month of usage events is kept for 13 months after its end by default. So 14 are there before one is dropped. */
  usageMonths: 14,
  /** Charges, the ledger and the sums by the hour are kept forever. There is storage for this number of years. */
  booksYears: 5,
  /** Rows that a tenant adds to the sums by the hour, key and model, in the mean hour. At most one a request. */
  hourRowsPerTenant: 1,
};
const SERVICES = ['gateway', 'auth', 'metering', 'billing'];
const MONTHS_OF_YEAR = 12;
const SECONDS_OF_HOUR = 3_600;

/** What one installation can have of something. `most` of a single server is the largest that is common. */
export const LIMITS = [
  {
    name: 'one Redis shard, by the largest tenant',
    most: 1,
    used: ({ redis }) => redis.largestTenantCores / ASSUMPTIONS.usableShare,
    change: 'A tenant is in one shard. Give the largest customers several tenants.',
  },
  {
    name: 'partitions of `usage-events`, by metering',
    most: 12,
    used: ({ cores }) => cores.metering,
    change: 'Raise `partitions` of the topic; they never shrink. Then add replicas of metering.',
  },
  {
    name: 'partitions of `charges`, by billing',
    most: 12,
    used: ({ cores }) => cores.billing,
    change: 'Raise `partitions` of the topic; they never shrink. Then add replicas of billing.',
  },
  {
    name: 'cores of one PostgreSQL server',
    most: 64,
    used: ({ postgres }) => postgres.cores,
    change: 'Give metering and billing servers of their own (`DATABASE_URL`). Beyond that: several installations.',
  },
  {
    name: 'write-ahead log of one PostgreSQL server, MB/s',
    most: 500,
    used: ({ postgres }) => postgres.walMbPerSecond,
    change: 'Give metering and billing servers of their own (`DATABASE_URL`). Beyond that: several installations.',
  },
  {
    name: `storage of PostgreSQL after ${ASSUMPTIONS.booksYears} years, TB`,
    most: 10,
    used: ({ postgres }) => postgres.usageTb + postgres.booksTb,
    change: 'Give it more storage, or metering and billing servers of their own. Beyond that: several installations.',
  },
];

/**
 * What a load takes.
 * @param {{ requestsPerSecond: number, tenants: number }} load at the peak
 * @param {object} costs as in unit-costs.json
 */
export function capacityOf({ requestsPerSecond, tenants }, costs, assumptions = ASSUMPTIONS) {
  const { usableShare, streamShare, streamChunks, streamSeconds, plainSeconds } = assumptions;
  const { cpuMicros, bytes, entryMicros } = costs;
  /** Cores in use for this many events a second. */
  const cores = (perSecond, micros) => (perSecond * micros) / 1e6;
  const chunksPerSecond = requestsPerSecond * streamShare * streamChunks;
  const of = (part) =>
    cores(requestsPerSecond, cpuMicros.request[part]) + cores(chunksPerSecond, cpuMicros.chunk[part]);

  // A usage entry a tenant and second at most, when a whole cent has gathered: at most one a request.
  const entriesPerSecond = Math.min(requestsPerSecond, tenants * assumptions.activeTenantShare);
  const redisCores = of('Redis');
  const postgresCores = of('PostgreSQL') + cores(entriesPerSecond, entryMicros.PostgreSQL);
  // A process is one thread, so a replica is a core. A gateway uses a part of it whatever its share of the load is.
  const usable = (service) => usableShare - (service === 'gateway' ? costs.gatewayCores : 0);
  const used = Object.fromEntries(SERVICES.map((service) => [service, of(service)]));
  const needed = Object.fromEntries(SERVICES.map((service) => [service, used[service] / usable(service)]));
  const replicas = Object.fromEntries(
    Object.entries(needed).map(([part, many]) => [part, Math.max(assumptions.leastReplicas, Math.ceil(many))]),
  );
  const load = {
    requestsPerSecond,
    tenants,
    open: requestsPerSecond * (streamShare * streamSeconds + (1 - streamShare) * plainSeconds),
    replicas,
    /** Cores that requests use, without the reserve and the gateways' own part; and replicas before rounding up. */
    used,
    cores: needed,
    redis: {
      shards: Math.max(1, Math.ceil(redisCores / usableShare)),
      largestTenantCores: redisCores * assumptions.largestTenantShare,
      gb: (tenants * (bytes.redisTenant + assumptions.keysPerTenant * bytes.redisKey)) / 1e9,
    },
    kafka: {
      partitions: Math.max(12, replicas.metering, replicas.billing),
      cores: of('Kafka') / usableShare,
    },
    postgres: {
      cores: postgresCores / usableShare,
      entriesPerSecond,
      walMbPerSecond: (requestsPerSecond * bytes.wal) / 1e6,
      ...storageOf({ requestsPerSecond, entriesPerSecond, tenants }, bytes, assumptions),
    },
  };
  return { ...load, limits: limitsOf(load) };
}

/** What PostgreSQL keeps, in TB: `usageTb` once the first month is dropped, `booksTb` after `booksYears`. */
function storageOf({ requestsPerSecond, entriesPerSecond, tenants }, bytes, assumptions) {
  const { meanOfPeak, secondsOfMonth, usageMonths, booksYears, hourRowsPerTenant } = assumptions;
  const seconds = (months) => meanOfPeak * secondsOfMonth * months;
  const hourRowsPerSecond = Math.min(requestsPerSecond * meanOfPeak, (tenants * hourRowsPerTenant) / SECONDS_OF_HOUR);
  const years = booksYears * MONTHS_OF_YEAR;
  const booksPerSecond = requestsPerSecond * bytes.charge + entriesPerSecond * bytes.postgresEntry;
  // An hour has its rows whatever its load.
  const hours = hourRowsPerSecond * bytes.usageHour * secondsOfMonth * years;
  return {
    usageTb: (seconds(usageMonths) * requestsPerSecond * bytes.usageEvent) / 1e12,
    booksTb: (seconds(years) * booksPerSecond + hours) / 1e12,
  };
}

/** How much of each limit the load uses, the most first. The first one is the bottleneck. */
function limitsOf(load) {
  return LIMITS.map(({ used, most, ...limit }) => ({ ...limit, share: used(load) / most })).sort(
    (a, b) => b.share - a.share,
  );
}
