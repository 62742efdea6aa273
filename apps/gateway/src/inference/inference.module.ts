import { Module, type OnApplicationShutdown } from '@nestjs/common';
import { AdmissionClient } from '@tollgate/admission';
import { AcceptModule } from '../accept/accept.module';
import { ActivityModule } from '../activity/activity.module';
import { AdmitModule } from '../admit/admit.module';
import { AuthenticateModule } from '../authenticate/authenticate.module';
import { Catalog } from '../catalog/catalog';
import { CatalogModule } from '../catalog/catalog.module';
import { IdempotencyModule } from '../idempotency/idempotency.module';
import { PromptModule } from '../prompt/prompt.module';
import { TokenizerThrottle } from '../prompt/tokenizer-throttle';
import { SettleModule } from '../settle/settle.module';
import { Settlements } from '../settle/settlement';
import { StreamWatch } from '../upstream/stream/stream-watch';
import { Upstream } from '../upstream/upstream';
import { UpstreamModule } from '../upstream/upstream.module';
import { GATEWAY_OPTIONS, type GatewayOptions } from '../options';
import { AnswerReader } from './plain/answer-reader';
import { Authentication } from './authentication';
import { BodyReader, readLimits } from './read/body-reader';
import { InFlight } from './client/in-flight';
import { InferenceRouter } from './inference-router';
import { Intake } from './read/intake';
import { KeptConnections } from './client/kept-connections';
import { Pipeline } from './pipeline';
import { PlainServer } from './serve/plain-server';
import { Serving } from './serving';
import { StreamServer } from './serve/stream-server';
import { UnreadAnswers } from './client/unread-answers';

/** Made by a factory, because tests set other limits. */
const bodyReader = {
  provide: BodyReader,
  inject: [Catalog, GATEWAY_OPTIONS],
  useFactory: (catalog: Catalog, { maxBodyMib }: GatewayOptions) => new BodyReader(catalog, readLimits(maxBodyMib)),
};

const answerReader = {
  provide: AnswerReader,
  inject: [TokenizerThrottle],
  useFactory: (turns: TokenizerThrottle) => new AnswerReader(turns),
};

/** Composes the stages, which know nothing of each other, into the pipeline. */
@Module({
  imports: [
    AcceptModule,
    ActivityModule,
    AuthenticateModule,
    CatalogModule,
    PromptModule,
    AdmitModule,
    IdempotencyModule,
    UpstreamModule,
    SettleModule,
  ],
  providers: [
    bodyReader,
    answerReader,
    Authentication,
    Intake,
    StreamServer,
    PlainServer,
    Serving,
    Pipeline,
    InFlight,
    KeptConnections,
    UnreadAnswers,
    InferenceRouter,
  ],
  exports: [InferenceRouter, InFlight, KeptConnections, SettleModule],
})
export class InferenceModule implements OnApplicationShutdown {
  constructor(
    private readonly upstream: Upstream,
    private readonly bodies: BodyReader,
    private readonly answers: AnswerReader,
    private readonly streams: StreamWatch,
    private readonly settlements: Settlements,
    private readonly admission: AdmissionClient,
  ) {}

  /**
   * The phase `applications` of a stop: takes the stages down in the order in which they depend on each other. Running
   * requests have ended by then (`PublicStop`), and the stores and the messages close afterwards.
   */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all([this.upstream.close(), this.bodies.close(), this.answers.close()]);
    this.streams.stop();
    await this.settlements.flush();
    await this.admission.close();
  }
}
