import { eventually } from '@tollgate/testing';
import type { OnPage } from '../running/deployed';
import { openPage } from '../browser/looks';

const answerOf = (status: number, code: string) => ({
  status,
  json: { error: { code, message: `As ${code}.`, requestId: 'req_1' } },
});

/** A secret that is shown once stays until its person closes it. */
export function shownOnceTests(deployed: () => OnPage): void {
  let tenantId: string;
  const name = 'shown once';
  beforeAll(async () => {
    const { call } = deployed();
    ({ id: tenantId } = (await call('operator/tenants', { name: 'Showing' })) as { id: string });
    await call(`tenants/${tenantId}/keys`, { name });
  });
  const keys = () => `${deployed().console_.base}/console/api/tenants/${tenantId}/keys`;
  const renewed = () => deployed().page.waitForResponse(keys());
  /** Creates the next secret of the key, and returns the place that shows it. */
  const rotate = async () => {
    const { console_, page } = deployed();
    await openPage(page, { base: console_.base, tenantId }, ['keys', 'Keys']);
    await page.getByRole('button', { name: `Rotate ${name}` }).click();
    await page.getByRole('button', { name: 'Make the next secret' }).click();
    const secret = page.getByLabel('Key', { exact: true });
    await secret.waitFor();
    return secret;
  };
  afterEach(() => deployed().page.unrouteAll({ behavior: 'wait' }));

  it('it stays after a click beside it', async () => {
    const { page } = deployed();
    const secret = await rotate();
    await page.mouse.click(5, 5);
    await renewed();
    expect(await secret.count()).toBe(1);
  });

  it('it stays while its row is not in the list', async () => {
    const { page } = deployed();
    const secret = await rotate();
    await page.route(keys(), (route) => route.fulfill({ json: { data: [], nextCursor: null } }));
    await page.getByText('There are no keys yet.', { exact: false }).waitFor();
    expect(await secret.count()).toBe(1);
    await page.getByRole('button', { name: 'Done' }).click();
    await secret.waitFor({ state: 'detached' });
  });

  it('it stays while the console cannot say who is signed in', async () => {
    const { page } = deployed();
    const secret = await rotate();
    let asked = 0;
    await page.route('**/console/api/me', async (route) => {
      await route.fulfill(answerOf(503, 'unavailable'));
      asked++;
    });
    // It makes the page ask who is signed in.
    await page.route(keys(), (route) => route.fulfill(answerOf(401, 'unauthenticated')), { times: 1 });
    // The question and its two repeats.
    await eventually(() => expect(asked).toBeGreaterThanOrEqual(3));
    // A page that was taken away asks for no keys.
    await renewed();
    await renewed();
    expect(await secret.count()).toBe(1);
  });
}
