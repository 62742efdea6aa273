import { Injectable } from '@nestjs/common';

/** Where programs call the APIs, for the lines that the pages show. */
@Injectable()
export class ApiAddresses {
  /** Set when the server listens. */
  origin = '';

  get inferenceUrl(): string {
    return `${this.origin}/v1`;
  }

  get managementUrl(): string {
    return `${this.origin}/_api/v1`;
  }
}
