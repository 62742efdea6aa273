import type { AdmissionClient } from '@tollgate/admission';
import type { Admitter } from '../admit/admit';
import type { Authenticator } from '../authenticate/authenticate';
import type { Catalog } from '../catalog/catalog';
import type { TokenizerThrottle } from '../prompt/tokenizer-throttle';
import type { StreamWatch } from '../upstream/stream-watch';
import type { Upstream } from '../upstream/upstream';
import type { BodyReader } from './body/body-reader';
import type { Intake } from './intake';
import type { Settlements } from '../settle/settlement';

/** The stages of the pipeline. They do not know each other. */
export interface Stages {
  authenticator: Authenticator;
  catalog: Catalog;
  bodies: BodyReader;
  intake: Intake;
  admitter: Admitter;
  admission: AdmissionClient;
  upstream: Upstream;
  streams: StreamWatch;
  counting: TokenizerThrottle;
  settlements: Settlements;
}
