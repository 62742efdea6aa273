import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import { CredentialGuard, tooManyAttempts } from '../accept/credential-guard';
import { Authenticator, type Principal } from '../authenticate/authenticate';
import type { Client } from './client/client';
import { InferenceError } from '../inference-errors';

/** Authenticates requests, and refuses addresses that send too many wrong credentials. */
@Injectable()
export class Authentication {
  constructor(
    private readonly authenticator: Authenticator,
    private readonly credentialGuard: CredentialGuard,
  ) {}

  /** Notes the owner of the key at the client. Rejects with InferenceError if the key is not in force. */
  async authenticate(request: IncomingMessage, client: Client): Promise<Principal> {
    const waitMs = this.credentialGuard.waitMs(request);
    if (waitMs > 0) throw new InferenceError('requests_limit_exceeded', tooManyAttempts(waitMs));
    const result = await this.authenticator.authenticate(request.headers.authorization, Date.now());
    if (result.kind === 'principal') {
      this.credentialGuard.admitted(request);
      const { principal } = result;
      client.owner = principal;
      return principal;
    }
    client.formerOwner = result.of ?? null;
    // A request without a key, or with one that was issued, guesses nothing.
    const isGuess = result.reason !== 'missing_api_key' && result.reason !== 'no_profile' && !result.wasIssued;
    const furtherMs = isGuess ? this.credentialGuard.failed(request) : 0;
    if (furtherMs > 0) throw new InferenceError('requests_limit_exceeded', tooManyAttempts(furtherMs));
    if (result.reason === 'management_token')
      throw new InferenceError('invalid_api_key', {
        message: 'This is a management token (fma_…). Send an inference key (sk-svc-…).',
      });
    if (result.reason === 'no_profile')
      throw new InferenceError('invalid_api_key', {
        message: 'The plan or profile of this API key no longer exists. Create a new key.',
        by: { what: 'no_profile' },
      });
    throw new InferenceError(result.reason, { by: result.by });
  }
}
