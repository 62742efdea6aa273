import { Controller, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { TenantRow } from '@tollgate/contracts';
import type { Messages } from '../messages';
import { MessagesModule } from './messages.module';
import { MessagesServer } from './messages-server';
import { MessagePattern } from './patterns';

const steps: string[] = [];
const step = (name: string) => async () => void steps.push(name);

/** The calls of the seam during an application's lifecycle, in order. */
const messages = {
  handle: (subject: string) => void steps.push(`answers ${subject}`),
  start: step('messages start'),
  stopConsuming: step('messages stop consuming'),
} as unknown as Messages;

@Injectable()
class Publisher {
  onModuleInit = step('publisher is initialised');
  onApplicationBootstrap = step('publisher starts');
  beforeApplicationShutdown = step('publisher flushes');
  onApplicationShutdown = step('publisher closes');
}

@Controller()
class Tenants {
  @MessagePattern('auth.tenants.get')
  async get(): Promise<TenantRow> {
    throw new Error('never asked');
  }
}

@Module({ controllers: [Tenants], providers: [Publisher] })
class Service {}

/** The order of the imports does not matter. */
const application = (given: Messages) =>
  NestFactory.createMicroservice(
    { module: class Root {}, imports: [Service, MessagesModule.of(given)] },
    { strategy: new MessagesServer(given), logger: false, abortOnError: false },
  );

beforeEach(() => steps.splice(0));

it('messages start before any module publishes, and stop consuming before any module flushes', async () => {
  const app = await application(messages);
  await app.listen();
  expect(steps.splice(0)).toEqual([
    'answers auth.tenants.get',
    'publisher is initialised',
    'messages start',
    'publisher starts',
  ]);
  await app.close();
  // Both the transport and the module call it. Their order depends on the form.
  expect([...new Set(steps)]).toEqual(['messages stop consuming', 'publisher flushes', 'publisher closes']);
});

it('a service whose messages do not start does not start', async () => {
  const failing = Object.assign(Object.create(messages) as Messages, {
    start: () => Promise.reject(new Error('no brokers')),
  });
  const app = await application(failing);
  await expect(app.listen()).rejects.toThrow('no brokers');
  expect(steps).not.toContain('publisher starts');
});

it('a shutdown continues when consuming cannot be stopped', async () => {
  const stuck = Object.assign(Object.create(messages) as Messages, {
    stopConsuming: () => Promise.reject(new Error('the connection is gone')),
  });
  const app = await application(stuck);
  await app.listen();
  await app.close();
  expect(steps.slice(-2)).toEqual(['publisher flushes', 'publisher closes']);
});
