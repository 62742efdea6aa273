import { Injectable } from '@nestjs/common';

/** Where the APIs are called: by programs, for the lines that the pages show, and by the console itself. */
@Injectable()
export class ApiAddresses {
  /** Set when the server listens. */
  origin = '';
  /** Where the console itself calls them. */
  ownOrigin = '';

  get inferenceUrl(): string {
    return `${this.origin}/v1`;
  }

  /** For calls of the console itself, which may not reach the public address. */
  get calledInferenceUrl(): string {
    return `${this.ownOrigin}/v1`;
  }

  get managementUrl(): string {
    return `${this.origin}/_api/v1`;
  }
}
