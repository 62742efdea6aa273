import { Controller, Get, HttpCode, Post, Req, UseGuards } from '@nestjs/common';
import type { Author } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { backendName, ConfigSource } from '@tollgate/runtime';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../http/api-error';
import { bodyError } from '../../http/account/body';
import { readJsonObject } from '../../http/json-body';
import { bodyCheck } from '../../http/validate';
import { BackendNamed } from './backend-schemas';
import { OPERATOR_PREFIX } from '../prefix';
import { ByOperator, SecretGuard } from '../port/secret-guard';

const checkBody = bodyCheck(BackendNamed, bodyError);

interface BackendRow {
  backend: string;
  models: { id: string; weight: number }[];
  drainedAt: string | null;
}

/** The names that an error lists. */
const MAX_LISTED = 10;

/** Names the backends that exist, so that a mistyped name is found. */
function unknown(names: readonly string[]): ApiError {
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : '';
  const listed = names.length === 0 ? 'There is none.' : `There are: ${names.slice(0, MAX_LISTED).join(', ')}${more}.`;
  return new ApiError('not_found', `No backend of tollgate.yaml has this name. ${listed}`);
}

/** The backends of `tollgate.yaml`, and which of them get no new calls. */
@Controller(`${OPERATOR_PREFIX}/backends`)
@UseGuards(SecretGuard)
export class BackendsController {
  constructor(
    private readonly services: ServiceClient,
    private readonly config: ConfigSource,
  ) {}

  @Get()
  async list(): Promise<{ data: BackendRow[] }> {
    const { drained } = await this.services.request('auth.backends.drained', {});
    const since = new Map(drained.map(({ backend, drainedAt }) => [backend, drainedAt]));
    const rows = this.configured();
    // A backend that left the configuration while it was drained can still be enabled.
    for (const { backend } of drained) if (!rows.has(backend)) rows.set(backend, []);
    return {
      data: [...rows].map(([backend, models]) => ({ backend, models, drainedAt: since.get(backend) ?? null })),
    };
  }

  @Post('drain')
  @HttpCode(200)
  async drain(@ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { backend } = checkBody(readJsonObject(request));
    const known = [...this.configured().keys()];
    if (!known.includes(backend)) throw unknown(known);
    return { data: await this.services.request('auth.backends.drain', { backend, by }) };
  }

  @Post('enable')
  @HttpCode(200)
  async enable(@ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { backend } = checkBody(readJsonObject(request));
    const { drained } = await this.services.request('auth.backends.drained', {});
    const known = new Set([...this.configured().keys(), ...drained.map((one) => one.backend)]);
    if (!known.has(backend)) throw unknown([...known]);
    await this.services.request('auth.backends.enable', { backend, by });
    return { data: { backend, drainedAt: null } };
  }

  /** By name, in the order of the file. */
  private configured(): Map<string, BackendRow['models']> {
    const rows = new Map<string, BackendRow['models']>();
    for (const { id, backends } of this.config.current.models) {
      for (const backend of backends) {
        const name = backendName(backend);
        rows.set(name, [...(rows.get(name) ?? []), { id, weight: backend.weight }]);
      }
    }
    return rows;
  }
}
