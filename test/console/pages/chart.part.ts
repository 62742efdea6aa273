import type { Locator } from 'playwright-core';
import type { UsageOfRange } from '../../../apps/console/src/api/answers';
import type { OnPage } from '../running/deployed';
import { openPage } from '../browser/looks';
import { nanosOf } from '../browser/shown-amounts';

const DAY_CHARS = 10;
/** The tolerance of a bar's height on the screen. */
const PIXEL = 1;
/** More stops of the Tab key than there are before the chart. */
const MAX_STOPS = 60;

/** The bars of the usage, as a pointer and a keyboard read them. */
export function chartTests(deployed: () => OnPage & { tenantId: string }): void {
  it('the amounts of a bar, read by pointer and by keyboard, and its height are those of the API', async () => {
    const { console_, page, tenantId } = deployed();
    await page.setViewportSize({ width: 1280, height: 800 });
    const open = async () => {
      const answered = page.waitForResponse((response) => /\/usage\?/.test(response.url()));
      await openPage(page, { base: console_.base, tenantId }, ['usage', 'Usage']);
      return (await (await answered).json()) as UsageOfRange;
    };
    const usage = await open();
    const days = [...new Set(usage.points.map(({ at }) => at))].sort();
    // Each label of the axis has the local time on hover.
    const labels = page.locator('.chart-times > span');
    const [utc, onHover] = [(await labels.first().textContent())!, await labels.first().getAttribute('title')];
    const localTime = (at: string) =>
      page.evaluate<string>(
        `new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' }).format(new Date('${at}'))`,
      );
    expect(onHover).toBe(await localTime(`${utc}T00:00:00Z`));
    await page.locator('.chart-zone', { hasText: 'UTC' }).waitFor();
    const partsOf = (at: string) =>
      usage.names.map((name) => {
        const point = usage.points.find((one) => one.at === at && one.name === name);
        return [name, BigInt(point?.costNanos ?? 0)] as const;
      });
    const sumOf = (at: string) => partsOf(at).reduce((sum, [, nanos]) => sum + nanos, 0n);
    const highest = days.reduce((max, at) => (sumOf(at) > sumOf(max) ? at : max));
    expect(usage.names.length).toBeGreaterThan(1);
    expect(sumOf(highest)).toBeGreaterThan(0n);

    const chart = page.getByRole('slider', { name: 'Spend by day' });
    const tip = page.locator('.chart-tip');
    const indexIn = ({ from }: UsageOfRange) => Math.round((Date.parse(highest) - Date.parse(from)) / 86_400_000);
    const bars = page.locator(`rect[data-bar="${indexIn(usage)}"]`);
    const boxes = await Promise.all((await bars.all()).map(boxOf));
    const height = boxes.reduce((sum, box) => sum + box.height, 0);
    const plot = await boxOf(chart);
    const top = nanosOf((await page.locator('.chart-amounts > span').last().textContent())!);
    expect(Math.abs(height - (Number(sumOf(highest)) / Number(top)) * plot.height)).toBeLessThan(PIXEL);

    const shown = async () => {
      const lines = (await tip.innerText()).split('\n').filter((line) => line.trim() !== '');
      const [head, rows, local] = [lines[0], lines.slice(1, -1), lines.at(-1)];
      return {
        day: head,
        amounts: rows.filter((_, row) => row % 2 === 1).map(nanosOf),
        names: rows.filter((_, row) => row % 2 === 0),
        local,
      };
    };
    const expected = async (at: string) => ({
      day: `${at.slice(0, DAY_CHARS)} UTC`,
      amounts: partsOf(at).map(([, nanos]) => nanos),
      names: partsOf(at).map(([name]) => name),
      local: `Begins ${await localTime(at)}`,
    });
    await page.mouse.move(boxes[0]!.x + boxes[0]!.width / 2, boxes[0]!.y + boxes[0]!.height / 2);
    expect(await shown()).toEqual(await expected(highest));
    await page.mouse.move(0, 0);
    await tip.waitFor({ state: 'detached' });

    // The first stop, and one: then the keyboard leaves it. The range may have moved on by a day.
    const index = indexIn(await open());
    const isFocused = () => page.evaluate<boolean>(`document.activeElement?.getAttribute('role') === 'slider'`);
    for (let stop = 0; stop < MAX_STOPS && !(await isFocused()); stop++) await page.keyboard.press('Tab');
    expect(await isFocused()).toBe(true);
    await page.keyboard.press('Home');
    for (let bar = 0; bar < index; bar++) await page.keyboard.press('ArrowRight');
    expect(await shown()).toEqual(await expected(highest));
    const text = (await chart.getAttribute('aria-valuetext'))!;
    const [day, amounts] = text.split(': ') as [string, string];
    expect(day).toBe(`${highest.slice(0, DAY_CHARS)} UTC`);
    expect(amounts.split(', ').map((part) => [part.split(' ')[0], nanosOf(part.split(' ')[1]!)])).toEqual(
      partsOf(highest),
    );
    await page.keyboard.press('Escape');
    await tip.waitFor({ state: 'detached' });
    await page.keyboard.press('ArrowLeft');
    await tip.waitFor();
    await page.keyboard.press('ArrowRight');
    expect(await shown()).toEqual(await expected(highest));
    await page.keyboard.press('End');
    expect(await chart.getAttribute('aria-valuenow')).toBe(await chart.getAttribute('aria-valuemax'));
    await page.keyboard.press('Tab');
    await tip.waitFor({ state: 'detached' });
    expect(await isFocused()).toBe(false);
    expect(await page.getByRole('slider').count()).toBe(1);
  });
}

const boxOf = async (one: Locator) => (await one.boundingBox())!;
