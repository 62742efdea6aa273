import { ServiceClient } from '@tollgate/messaging/nest';
import { eventually } from '@tollgate/testing';
import { Drains } from '../../../apps/gateway/src/upstream/drains';
import { Upstream } from '../../../apps/gateway/src/upstream/upstream';
import { askOperator } from '../ask';
import type { Services } from '../services';

/** Backends, drained and enabled by the operator API. */
export function backendsTests(services: Services): void {
  const ask = askOperator(services);
  const BACKEND = 'simulator:';

  describe('the backends of the operator API', () => {
    it('are those of tollgate.yaml, with their models and weights', async () => {
      const { status, json } = await ask('/backends');
      const models = ['sim-small', 'sim-large', 'sim-embed'].map((id) => ({ id, weight: 1 }));
      expect([status, json]).toEqual([200, { data: [{ backend: BACKEND, models, drainedAt: null }] }]);
    });

    it('are drained and enabled, and a repeat changes nothing', async () => {
      const drained = await ask('/backends/drain', { body: { backend: BACKEND } });
      expect([drained.status, drained.json.data.backend]).toEqual([200, BACKEND]);
      const again = await ask('/backends/drain', { body: { backend: BACKEND } });
      expect(again.json).toEqual(drained.json);
      expect((await ask('/backends')).json.data[0].drainedAt).toBe(drained.json.data.drainedAt);
      for (let time = 0; time < 2; time++) {
        const enabled = await ask('/backends/enable', { body: { backend: BACKEND } });
        expect([enabled.status, enabled.json]).toEqual([200, { data: { backend: BACKEND, drainedAt: null } }]);
      }
      expect((await ask('/backends')).json.data[0].drainedAt).toBeNull();
      const rows = (await ask('/audit?target=simulator:')).json.data as { action: string }[];
      expect(rows.map(({ action }) => action)).toEqual(['backend.enable', 'backend.drain']);
    });

    it.each([
      [{ backend: 'http://unknown/v1' }, 404, 'not_found'],
      [{ backend: '' }, 400, 'invalid_backend'],
      [{ backend: 5 }, 400, 'invalid_backend'],
      [{}, 400, 'invalid_backend'],
      [{ backend: BACKEND, more: 1 }, 400, 'unknown_field'],
    ])('refuse to drain %j', async (body, status, code) => {
      const answer = await ask('/backends/drain', { body });
      expect([answer.status, answer.json.error.code]).toEqual([status, code]);
    });

    it('are named when another name is given, and one that left the file while it was drained is enabled', async () => {
      for (const how of ['drain', 'enable']) {
        const { status, json } = await ask(`/backends/${how}`, { body: { backend: 'http://unknown/v1' } });
        expect([status, json.error.message]).toEqual([
          404,
          'No backend of tollgate.yaml has this name. There are: simulator:.',
        ]);
      }
      const backend = 'http://former/v1';
      await services.messages.request('auth.backends.drain', { backend });
      const enabled = await ask('/backends/enable', { body: { backend } });
      expect([enabled.status, enabled.json.data]).toEqual([200, { backend, drainedAt: null }]);
      expect((await ask('/backends/enable', { body: { backend } })).status).toBe(404);
    });

    it('get no calls while they are drained, on every gateway, also on one that starts later', async () => {
      await ask('/backends/drain', { body: { backend: BACKEND } });
      // Each has what a gateway process has.
      const gateways = [1, 2].map(() => {
        const upstream = new Upstream();
        const drains = new Drains(new ServiceClient(services.messages), upstream);
        drains.onApplicationBootstrap();
        return { upstream, drains, isDrained: () => upstream.fleet.engineOf(BACKEND).drained };
      });
      try {
        for (const { isDrained } of gateways) await eventually(() => expect(isDrained()).toBe(true));
        await ask('/backends/enable', { body: { backend: BACKEND } });
        for (const { isDrained } of gateways) await eventually(() => expect(isDrained()).toBe(false));
      } finally {
        for (const { drains } of gateways) drains.onApplicationShutdown();
        await Promise.all(gateways.map(({ upstream }) => upstream.close()));
      }
    });
  });
}
