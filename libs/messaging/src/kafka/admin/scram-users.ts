import { pbkdf2, randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { StartError, withTimeout } from '@tollgate/runtime';
import { unusable } from './apply-topics';
import {
  CONNECTION_TIMEOUT_MS,
  patchKafkajs,
  REQUEST_TIMEOUT_MS,
  Sockets,
  type KafkaConnection,
} from '../client/connection';
import { errorTypeOf, isRefused, RightMissingError } from '../client/rights';

/** A user that logs in by SCRAM-SHA-512. */
export interface ScramUser {
  name: string;
  password: string;
}

const APPLY_TIMEOUT_MS = 30_000;
/** More than the brokers' minimum of 4,096. Each login computes this many. */
const ITERATIONS = 8_192;
const SALT_BYTES = 24;
const HASH_BYTES = 64;
const SHA_512 = 2;
const ALTER_USER_SCRAM_CREDENTIALS = { apiKey: 51, apiVersion: 0, apiName: 'AlterUserScramCredentials' };

/** The parts of kafkajs that talk to one broker. They have everything for this request except the request itself. */
interface Encoder {
  buffer: Buffer;
  writeInt8(value: number): Encoder;
  writeInt32(value: number): Encoder;
  writeUVarIntString(value: string): Encoder;
  writeUVarIntBytes(value?: Buffer): Encoder;
  writeUVarIntArray(value: Encoder[]): Encoder;
}
interface Decoder {
  readInt16(): number;
  readInt32(): number;
  readUVarIntString(): string | null;
  readUVarIntArray<T>(read: (decoder: Decoder) => T): T[] | null;
  readTaggedFields(): unknown;
}
interface Result {
  user: string | null;
  errorCode: number;
  message: string | null;
}
interface Broker {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  connectionPool: { send(exchange: object): Promise<Result[]> };
}
const load = createRequire(__filename);
const silent = { namespace: () => silent, debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/**
 * Creates these users at the brokers, or sets their passwords. Logged-in clients stay logged in. Brokers store no
 * password, only the data to verify one, and do not tell whether it is the same already. So it is set each time.
 */
export async function applyScramUsers(connection: KafkaConnection, users: readonly ScramUser[]): Promise<void> {
  if (users.length === 0) return;
  const upsertions = await Promise.all(users.map(upsertionOf));
  const sockets = new Sockets();
  try {
    const results = await withTimeout(APPLY_TIMEOUT_MS, ask(connection, sockets, upsertions));
    for (const { user, errorCode, message } of results) if (errorCode !== 0) throw refusal(user, errorCode, message);
  } catch (error) {
    if (error instanceof StartError) throw error;
    const lack = isRefused(error) ? new RightMissingError('ALTER on the cluster (to make users)', error) : undefined;
    throw unusable(connection, lack ?? error);
  } finally {
    sockets.destroy();
  }
}

async function ask(connection: KafkaConnection, sockets: Sockets, upsertions: Upsertion[]): Promise<Result[]> {
  const broker = await anyBroker(connection, sockets);
  const request = { ...ALTER_USER_SCRAM_CREDENTIALS, encode: async () => encode(upsertions) };
  return broker.connectionPool.send({ request, response: { decode, parse: async (results: Result[]) => results } });
}

/** Any broker: it passes the request on to the controller. */
async function anyBroker({ brokers, clientId, tls, sasl }: KafkaConnection, sockets: Sockets): Promise<Broker> {
  const ConnectionPool = load('kafkajs/src/network/connectionPool') as new (options: object) => object;
  const OneBroker = load('kafkajs/src/broker') as new (options: object) => Broker;
  patchKafkajs();
  let failure: unknown;
  for (const address of brokers) {
    const connectionPool = new ConnectionPool({
      host: address.slice(0, address.lastIndexOf(':')),
      port: Number(address.slice(address.lastIndexOf(':') + 1)),
      ssl: tls === true ? {} : tls || null,
      sasl,
      clientId,
      socketFactory: sockets.factory,
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      enforceRequestTimeout: true,
      logger: silent,
    });
    const broker = new OneBroker({ connectionPool, logger: silent, authenticationTimeout: CONNECTION_TIMEOUT_MS });
    try {
      await broker.connect();
      return broker;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

interface Upsertion {
  name: string;
  salt: Buffer;
  saltedPassword: Buffer;
}

async function upsertionOf({ name, password }: ScramUser): Promise<Upsertion> {
  const salt = randomBytes(SALT_BYTES);
  return { name, salt, saltedPassword: await promisify(pbkdf2)(password, salt, ITERATIONS, HASH_BYTES, 'sha512') };
}

/** Version 0 of the protocol: https://kafka.apache.org/protocol#The_Messages_AlterUserScramCredentials */
function encode(upsertions: Upsertion[]): Encoder {
  const OneEncoder = load('kafkajs/src/protocol/encoder') as new () => Encoder;
  const fields = upsertions.map(({ name, salt, saltedPassword }) =>
    new OneEncoder()
      .writeUVarIntString(name)
      .writeInt8(SHA_512)
      .writeInt32(ITERATIONS)
      .writeUVarIntBytes(salt)
      .writeUVarIntBytes(saltedPassword)
      .writeUVarIntBytes(),
  );
  // The first and the last are the tags of the header and of the request: none.
  return new OneEncoder().writeUVarIntBytes().writeUVarIntArray([]).writeUVarIntArray(fields).writeUVarIntBytes();
}

async function decode(bytes: Buffer): Promise<Result[]> {
  const OneDecoder = load('kafkajs/src/protocol/decoder') as new (bytes: Buffer) => Decoder;
  const decoder = new OneDecoder(bytes);
  decoder.readTaggedFields();
  decoder.readInt32();
  const results = decoder.readUVarIntArray((each) => {
    const result = { user: each.readUVarIntString(), errorCode: each.readInt16(), message: each.readUVarIntString() };
    each.readTaggedFields();
    return result;
  });
  return results ?? [];
}

function refusal(user: string | null, code: number, message: string | null): Error {
  const { createErrorFromCode } = load('kafkajs/src/protocol/error') as { createErrorFromCode(code: number): Error };
  const error = createErrorFromCode(code);
  if (errorTypeOf(error)?.endsWith('_AUTHORIZATION_FAILED')) return error;
  return new StartError(`Kafka did not create the user "${user}": ${message ?? error.message}`);
}
