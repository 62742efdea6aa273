import { type DynamicModule, Global, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { AdmissionStore, PostgresAdmissionStore } from '@tollgate/admission';
import { CredentialStore, PostgresCredentialStore } from '@tollgate/credentials';
import { Messages, PostgresMessages } from '@tollgate/messaging';
import { ConfigSource } from '@tollgate/runtime';

/** The three seams on one Postgres, and the configuration: what every service finds injected. */
export interface Seams {
  messages: Messages;
  admission: AdmissionStore;
  credentials: CredentialStore;
  config: ConfigSource;
}

export function openSeams(url: string, config: ConfigSource): Seams {
  return {
    messages: new PostgresMessages({ url, applicationName: 'tollgate-messages' }),
    admission: new PostgresAdmissionStore({ url }),
    credentials: new PostgresCredentialStore({ url, applicationName: 'tollgate-credentials' }),
    config,
  };
}

@Global()
@Module({})
export class SeamsModule implements OnApplicationBootstrap {
  constructor(private readonly messages: Messages) {}

  /** Every service has registered what it consumes and handles by now; what publishes by itself starts after this. */
  async onApplicationBootstrap(): Promise<void> {
    await this.messages.start();
  }

  static register({ messages, admission, credentials, config }: Seams): DynamicModule {
    const providers = [
      { provide: Messages, useValue: messages },
      { provide: AdmissionStore, useValue: admission },
      { provide: CredentialStore, useValue: credentials },
      { provide: ConfigSource, useValue: config },
    ];
    return { module: SeamsModule, providers, exports: providers };
  }
}
