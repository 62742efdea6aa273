import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req } from '@nestjs/common';
import { type Static, Type } from '@sinclair/typebox';
import { type Author, inForce, MAX_ROTATION_GRACE_SECONDS, mintCredential } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import type { FastifyRequest } from 'fastify';
import { AllowInTenant, ByCaller, FromCaller, type Caller } from '../../access/allow';
import { mayDo } from '../../access/roles';
import { bodyOf, queryOf } from '../../http/body';
import type { IssuedKey, KeyList, KeyRow, KeyRowWithBudget } from '../answers';
import { rowOf } from '../records/budget-rows';
import {
  checkedName,
  checkedOwner,
  exact,
  ExpiresAtField,
  futureInstant,
  ModelsField,
  NameField,
  OwnerField,
  pageOf,
  ProfileField,
  TagsField,
} from '../fields';
import { requireId } from '../../http/require-id';

const optional = {
  profile: Type.Optional(ProfileField),
  expiresAt: Type.Optional(ExpiresAtField),
  owner: Type.Optional(OwnerField),
  tags: Type.Optional(TagsField),
  models: Type.Optional(ModelsField),
};
const KeyFields = Type.Object({ name: NameField, ...optional }, exact);
const KeyChange = Type.Object({ name: Type.Optional(NameField), ...optional }, exact);
const graceSeconds = Type.Integer({ minimum: 0, maximum: MAX_ROTATION_GRACE_SECONDS });

const readPage = queryOf(pageOf('key'));
const readKey = bodyOf(KeyFields);
const readChange = bodyOf(KeyChange);
const readRotation = bodyOf(Type.Object({ graceSeconds }, exact));

/** The inference keys of a tenant. */
@Controller('console/api/tenants/:tenantId/keys')
export class KeysController {
  constructor(
    private readonly services: ServiceClient,
    private readonly config: ConfigSource,
  ) {}

  @Get()
  @AllowInTenant('keys.read')
  async list(
    @Param('tenantId') tenantId: string,
    @FromCaller() { role }: Caller,
    @Query() query: unknown,
  ): Promise<KeyList> {
    const page = await this.services.request('auth.keys.list', { tenantId, ...readPage(query) });
    const { plan } = await this.services.request('auth.tenants.get', { tenantId });
    const profiles = this.config.current.plans.find(({ id }) => id === plan)?.profiles ?? [];
    const maySee = role !== null && mayDo(role, 'budgets.read');
    const defaultOf = ({ profile }: KeyRow) => profiles.find(({ id }) => id === profile)?.monthlyBudgetCents ?? null;
    const shown = maySee ? page.data : [];
    const idsOf = (keys: readonly KeyRow[]) => keys.map(({ id }) => id);
    const keyIds = idsOf(shown);
    const byDefault = idsOf(shown.filter((key) => defaultOf(key) !== null));
    const { data: states, heldNanos } =
      keyIds.length === 0
        ? { data: [], heldNanos: {} }
        : await this.services.request('billing.budget.of', { tenantId, keyIds, byDefault });
    const stateOf = new Map(states.map((state) => [state.keyId, state]));
    const heldBy = (keyId: string) => heldNanos && (heldNanos[keyId] ?? '0');
    const data = page.data.map((key): KeyRowWithBudget => {
      const state = stateOf.get(key.id);
      if (!state) return { ...key, budget: null };
      const { budgetCents, spentNanos } = rowOf(state, defaultOf(key));
      const heldNanos = heldBy(key.id) ?? null;
      return { ...key, budget: budgetCents === null ? null : { budgetCents, spentNanos, heldNanos } };
    });
    return { ...page, data };
  }

  /** The key exists in this process and in this one answer. Only its hash is sent on. */
  @Post()
  @AllowInTenant('keys.write')
  async create(
    @Param('tenantId') tenantId: string,
    @Req() request: FastifyRequest,
    @ByCaller() by: Author,
  ): Promise<IssuedKey> {
    const { name, owner, expiresAt, ...wanted } = readKey(request);
    const expires = futureInstant(expiresAt);
    const named = owner === undefined ? null : checkedOwner(owner);
    const { value, hash, last4 } = mintCredential('key');
    const row = await this.services.request('auth.keys.create', {
      by,
      tenantId,
      name: checkedName(name),
      hash,
      last4,
      ...wanted,
      ...(named !== null && { owner: named }),
      ...(expires !== null && { expiresAt: expires }),
    });
    return { ...row, key: value };
  }

  /** Absent fields stay as they are. */
  @Patch(':id')
  @AllowInTenant('keys.write')
  update(
    @Param('tenantId') tenantId: string,
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @ByCaller() by: Author,
  ): Promise<KeyRow> {
    requireId('key', id);
    const change = this.services.request('auth.keys.update', { tenantId, id, by, ...checked(readChange(request)) });
    return inForce(change, 'The key may still work as before. Repeat the change until it succeeds.');
  }

  /** The next secret of the key. Former ones are accepted for the grace time. */
  @Post(':id/rotate')
  @AllowInTenant('keys.write')
  @HttpCode(200)
  async rotate(
    @Param('tenantId') tenantId: string,
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @ByCaller() by: Author,
  ): Promise<IssuedKey> {
    const grace = readRotation(request);
    requireId('key', id);
    const { value, hash, last4 } = mintCredential('key');
    const change = this.services.request('auth.keys.rotate', { tenantId, id, by, hash, last4, ...grace });
    const row = await inForce(change, 'The key may have a next secret that nobody knows. Rotate it again.');
    return { ...row, key: value };
  }

  @Delete(':id')
  @AllowInTenant('keys.write')
  @HttpCode(204)
  async revoke(@Param('tenantId') tenantId: string, @Param('id') id: string, @ByCaller() by: Author): Promise<void> {
    requireId('key', id);
    await this.services.request('auth.keys.revoke', { tenantId, id, by });
  }
}

function checked({ name, owner, expiresAt, ...wanted }: Static<typeof KeyChange>) {
  return {
    ...wanted,
    ...(name !== undefined && { name: checkedName(name) }),
    ...(owner !== undefined && { owner: checkedOwner(owner) }),
    ...(expiresAt !== undefined && { expiresAt: futureInstant(expiresAt) }),
  };
}
