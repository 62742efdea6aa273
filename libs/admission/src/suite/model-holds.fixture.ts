import type { ModelHold } from './model-arithmetic.fixture';

/** The holds of the model by id. */
export class ModelHolds extends Map<string, ModelHold> {
  pendingHold(id: string, tenantId: string): ModelHold | undefined {
    const hold = this.get(id);
    return hold?.state === 'pending' && hold.request.draft.tenantId === tenantId ? hold : undefined;
  }

  pending(tenantId: string, keyId?: string): ModelHold[] {
    return [...this.values()].filter(
      ({ state, request: { draft } }) =>
        state === 'pending' && draft.tenantId === tenantId && (!keyId || draft.keyId === keyId),
    );
  }

  settled(tenantId: string): ModelHold[] {
    return [...this.values()].filter(
      ({ state, request }) => state === 'settled' && request.draft.tenantId === tenantId,
    );
  }
}
