// Of commit 351276700c9b45dbbf3b7c464f61b8189a42caa1. Kept by tools/checks/former-contracts.mjs.
import type { BudgetEvent, Charge, BalanceUpdate, TenantUpdate, UsageEvent } from './events';
import type { Service } from './services';
import type { Subject } from './subjects';
export interface TopicTypes {
  'usage-events': UsageEvent;
  charges: Charge;
  'credit-news': BalanceUpdate;
  'tenant-news': TenantUpdate;
  'budget-events': BudgetEvent;
}
export type Topic = keyof TopicTypes;
export interface TopicStorage {
  partitions: number;
  retentionMs: number;
  compacted: boolean;
}
export interface TopicDefinition extends TopicStorage {
  key: 'tenantId';
  schemaVersion: number;
  sharesRecords: boolean;
  producers: readonly Service[];
  groups: Readonly<Record<string, Service>>;
}
export declare const TOPICS: Record<Topic, TopicDefinition>;
export type RequestService = Subject extends `${infer Service}.${string}` ? Service : never;
export type RequestTopic = `requests.${RequestService}` | 'replies';
export declare const REQUEST_TOPICS: Record<RequestTopic, TopicStorage>;
export declare const DEAD_TOPIC: TopicStorage;
export interface Envelope<T = unknown> {
  id: string;
  v: number;
  at: string;
  data: T;
}
