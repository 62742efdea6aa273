import { listLetters, replayLetters } from './dead';
import { findBrokers } from './kafka';
import { createKeys, rotateKeys } from './message-keys';
import { applyAll, checkAll } from './topics';

/** Everything that loads kafkajs, as one value: Node finds a single export of a compiled module by its name. */
export const kafkaTools = { findBrokers, applyAll, checkAll, listLetters, replayLetters, createKeys, rotateKeys };
