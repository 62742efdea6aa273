import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import { Messages } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import { AccessGuard } from './access/access.guard';
import { AccessModule } from './access/access.module';
import { AccountModule } from './api/account/account.module';
import { CredentialsModule } from './api/credentials/credentials.module';
import { LiveModule } from './api/live/live.module';
import { OperatorModule } from './api/operator/operator.module';
import { PeopleModule } from './api/people/people.module';
import { RecordsModule } from './api/records/records.module';
import { UnknownRouteController } from './api/unknown-route.controller';
import { UsageModule } from './api/usage/usage.module';
import { ConsoleDataSource, openConsoleDatabase } from './database';
import { EnvelopeFilter } from './http/envelope';
import { ConsoleOptions } from './options';

/** The messages and the configuration of the console. The program starts and closes them. */
export interface ConsoleServices {
  messages: Messages;
  config: ConfigSource;
}

/** What all modules of the console share. */
@Module({})
class ConsoleGlobals {}

/** The console, served by `createConsoleApp`. One guard decides for all routes. */
@Module({
  imports: [
    AccessModule,
    AccountModule,
    PeopleModule,
    CredentialsModule,
    RecordsModule,
    UsageModule,
    OperatorModule,
    LiveModule,
  ],
  controllers: [UnknownRouteController],
  providers: [
    { provide: APP_GUARD, useExisting: AccessGuard },
    { provide: APP_FILTER, useClass: EnvelopeFilter },
  ],
})
export class ConsoleModule {
  static register({ messages, config }: ConsoleServices, options: ConsoleOptions): DynamicModule {
    const providers = [
      { provide: Messages, useValue: messages },
      { provide: ConfigSource, useValue: config },
      { provide: ConsoleOptions, useValue: options },
      { provide: ConsoleDataSource, useFactory: () => openConsoleDatabase(options.databaseUrl) },
      ServiceClient,
    ];
    const exports = [ConfigSource, ConsoleOptions, ConsoleDataSource, ServiceClient];
    return { module: ConsoleModule, imports: [{ module: ConsoleGlobals, global: true, providers, exports }] };
  }
}
