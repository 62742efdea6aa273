import { listLetters, replayLetters, type DeadStore } from './dead';
import { findBrokers } from './kafka';
import { kafkaDead } from './kafka-dead';
import { createKeys, rotateKeys } from './message-keys';
import { findDatabase, storedDead } from './stored-dead';
import { applyAll, checkAll } from './topics';

/** That of the brokers of KAFKA_BROKERS, or without them of a standalone form. */
const findDeadStore = async (env: NodeJS.ProcessEnv): Promise<DeadStore> =>
  env['KAFKA_BROKERS'] ? kafkaDead(findBrokers(env)) : storedDead(await findDatabase(env));

/** Everything that loads kafkajs, as one value: Node finds a single export of a compiled module by its name. */
export const kafkaTools = {
  ...{ findBrokers, applyAll, checkAll, createKeys, rotateKeys },
  ...{ findDeadStore, listLetters, replayLetters },
};
