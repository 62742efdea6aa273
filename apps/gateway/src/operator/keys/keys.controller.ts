import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req, UseGuards } from '@nestjs/common';
import { inForce, mintCredential, type Author } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../http/api-error';
import { bodyError, fieldMessage, futureInstant, refuseFields, trimmedName } from '../../http/account/body';
import { revokeCredential } from '../../http/account/revoke';
import { issueKey, KEY_NOTE, readKeyBody } from '../../http/account/issue-key';
import { KeysQuery } from '../../http/account/schemas';
import { readJsonObject } from '../../http/json-body';
import { bodyCheck, queryCheck } from '../../http/validate';
import { OPERATOR_PREFIX } from '../prefix';
import { DEFAULT_ROTATION_GRACE_SECONDS, KeyRotate, KeysApply, KeyUpdate } from './key-schemas';
import { ByOperator, SecretGuard } from '../port/secret-guard';
import { TenantLookup } from '../tenant-lookup';
import { requireId } from '../require-id';

const checkQuery = queryCheck(KeysQuery);
const checkUpdate = bodyCheck(KeyUpdate, bodyError);
const checkRotation = bodyCheck(KeyRotate, bodyError);
const checkList = bodyCheck(KeysApply, bodyError);
/** A list of 500 keys is written in about a second on an idle machine. */
const APPLY_DEADLINE_MS = 12_000;

/** The inference keys of a tenant. A key is minted here and shown only in the answer that issues it. */
@Controller(`${OPERATOR_PREFIX}/tenants/:tenantId/keys`)
@UseGuards(SecretGuard)
export class OperatorKeysController {
  constructor(
    private readonly services: ServiceClient,
    private readonly tenants: TenantLookup,
  ) {}

  @Get()
  async list(@Param('tenantId') tenantId: string, @Query() query: unknown) {
    const page = checkQuery(query);
    await this.tenants.get(tenantId);
    return this.services.request('auth.keys.list', { tenantId, ...page });
  }

  @Post()
  async create(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const wanted = readKeyBody(readJsonObject(request));
    requireId('ten', tenantId);
    const { row, key } = await issueKey(this.services, tenantId, wanted, by);
    return { data: { ...row, key }, note: KEY_NOTE };
  }

  /** Absent fields stay as they are. */
  @Patch(':id')
  async update(
    @Param('tenantId') tenantId: string,
    @Param('id') id: string,
    @ByOperator() by: Author,
    @Req() request: FastifyRequest,
  ) {
    const { expiresAt, ...wanted } = checkUpdate(trimmedName(readJsonObject(request)));
    const expiry = expiresAt === undefined ? {} : { expiresAt: futureInstant(expiresAt) };
    requireId('ten', tenantId);
    requireId('key', id);
    const change = this.services.request('auth.keys.update', { tenantId, id, by, ...wanted, ...expiry });
    return { data: await inForce(change, 'The key may still work as before. Repeat the change until it succeeds.') };
  }

  /** The key keeps its id. Former secrets are accepted for the grace time. */
  @Post(':id/rotate')
  @HttpCode(200)
  async rotate(
    @Param('tenantId') tenantId: string,
    @Param('id') id: string,
    @ByOperator() by: Author,
    @Req() request: FastifyRequest,
  ) {
    const { graceSeconds = DEFAULT_ROTATION_GRACE_SECONDS } = checkRotation(readJsonObject(request));
    requireId('ten', tenantId);
    requireId('key', id);
    const { value, hash, last4 } = mintCredential('key');
    const change = this.services.request('auth.keys.rotate', { tenantId, id, hash, last4, graceSeconds, by });
    const row = await inForce(change, 'The key may have a next secret that nobody knows. Rotate it again.');
    return { data: { ...row, key: value }, note: KEY_NOTE };
  }

  /** Makes the keys match a list, all or none. A dry run mints nothing. */
  @Post('apply')
  @HttpCode(200)
  async apply(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { keys, revokeOthers = false, dryRun = false } = checkList(withTrimmedNames(readJsonObject(request)));
    const wanted = keys.map(({ expiresAt, ...key }, index) => ({
      ...key,
      ...(expiresAt !== undefined && { expiresAt: within(`${index}.expiresAt`, () => futureInstant(expiresAt)) }),
    }));
    requireId('ten', tenantId);
    const minted = dryRun ? [] : keys.map(() => mintCredential('key'));
    const secrets = minted.map(({ hash, last4 }) => ({ hash, last4 }));
    const made = { tenantId, keys: wanted, revokeOthers, by, ...(!dryRun && { secrets }) };
    const { created, updated, ...rest } = await this.services.request('auth.keys.apply', made, {
      deadlineMs: APPLY_DEADLINE_MS,
    });
    const valueOf = new Map(keys.map(({ name }, index) => [name, minted[index]?.value ?? null]));
    return {
      data: {
        created: created.map((row) => ({ ...row, last4: dryRun ? null : row.last4, key: valueOf.get(row.name) })),
        updated: updated.map(({ row, fields, before }) => ({ ...row, fields, before })),
        ...rest,
        dryRun,
      },
    };
  }

  @Delete(':id')
  @HttpCode(204)
  async revoke(
    @Param('tenantId') tenantId: string,
    @Param('id') id: string,
    @ByOperator() by: Author,
    @Req() request: FastifyRequest,
  ) {
    refuseFields(request);
    requireId('ten', tenantId);
    requireId('key', id);
    await revokeCredential(this.services, 'key', { tenantId, id, by });
  }
}

/** The body with the names of its keys trimmed. Errors: invalid_name, with the place. */
function withTrimmedNames(body: Record<string, unknown>): Record<string, unknown> {
  if (!Array.isArray(body['keys'])) return body;
  const trimmed = (key: unknown, index: number): unknown =>
    typeof key === 'object' && key !== null
      ? within(`${index}.name`, () => trimmedName(key as Record<string, unknown>))
      : key;
  return { ...body, keys: body['keys'].map(trimmed) };
}

/** Names the place in the list in an error. */
function within<T>(place: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new ApiError(error.code, `keys.${place}: ${error.publicMessage ?? fieldMessage(error.code)}`);
  }
}
