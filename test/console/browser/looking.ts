import { mkdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { layoutShift, openPage, unreachableByKeyboard } from './looks';

/** Content that moves by less is not seen to move. */
const MAX_SHIFT = 0.01;
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
/** The buttons of the header whose text is cut. */
const CUT_NAMES = `[...document.querySelectorAll('header button *')]
  .filter(({ scrollWidth, clientWidth }) => clientWidth > 0 && scrollWidth > clientWidth)
  .map(({ textContent }) => textContent)`;
const ANIMATIONS_END = 'Promise.allSettled(document.getAnimations().map(({ finished }) => finished)).then(() => {})';
/** A sheet and the menu scroll for themselves. */
const HEIGHT = `Math.max(
  document.documentElement.scrollHeight,
  ...[...document.querySelectorAll('[role="dialog"], nav')]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .map((one) => one.scrollHeight + one.getBoundingClientRect().top),
)`;
const MAX_HEIGHT = 1_800;
const PHONE_PX = 375;
/** Over secrets. */
const COVER = '#ced4da';
/** Where TOLLGATE_SCREENSHOTS is set, the pictures of the pages are written. */
const PICTURES = resolve(__dirname, '../../../docs/console');

interface AxeViolation {
  id: string;
  nodes: { html: string }[];
}

export type LookAt = (
  at: { base: string; tenantId: string },
  page: readonly [path: string, title: string],
  looks?: {
    /** The name of the pictures; by default the path. Null: no picture, because the page shows a secret. */
    name?: string | null;
    /** What `isShown` opens moves what is below it. */
    moves?: boolean;
    /** Waits for what the page shows last. */
    isShown?: (page: Page) => Promise<unknown>;
  },
) => Promise<void>;

/** What holds for every page that a browser shows. */
export function lookingAt(page: () => Page) {
  /** `rules`: only these, by default all. */
  async function violations(rules?: readonly string[]): Promise<string[]> {
    // In the world of the test, which the policy of the page does not bind.
    if (!(await page().evaluate<boolean>(`'axe' in globalThis`))) await page().evaluate(AXE);
    const options = JSON.stringify(rules ? { runOnly: rules } : {});
    const found = await page().evaluate<AxeViolation[]>(`axe.run(${options}).then(({ violations }) => violations)`);
    return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
  }

  /** `secrets` are covered. */
  async function picture(page_: string, look: string, secrets: Locator[] = []): Promise<void> {
    if (process.env['TOLLGATE_SCREENSHOTS'] === undefined) return;
    mkdirSync(PICTURES, { recursive: true });
    const name = page_.replace(/^\//, '').replaceAll('/', '-');
    // As high as the page, so that nothing is cut off but the end of a long list.
    const size = page().viewportSize()!;
    const height = await page().evaluate<number>(HEIGHT);
    await page().setViewportSize({ ...size, height: Math.min(Math.max(size.height, height), MAX_HEIGHT) });
    // The frame grows with the window in an animation, which is at its end here.
    const path = `${PICTURES}/${name}-${look}.png`;
    await page().screenshot({ path, animations: 'disabled', mask: secrets, maskColor: COVER });
    await page().setViewportSize(size);
  }

  /** The page changes its colours where it is, and each of them is the last one. */
  async function turn(colorScheme: 'light' | 'dark'): Promise<void> {
    await page().emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page().locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor({ state: 'attached' });
    await page().evaluate(ANIMATIONS_END);
  }

  /** Opens a page in light and on a phone, each time with all that holds for every page, and turns it dark. */
  const lookAt: LookAt = async (at, [path, title], { name = path, moves = false, isShown } = {}) => {
    for (const width of [1280, PHONE_PX]) {
      await page().emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
      await page().setViewportSize({ width, height: 800 });
      await openPage(page(), at, [path, title]);
      await isShown?.(page());
      expect([width, await violations()]).toEqual([width, []]);
      const overflow = await page().evaluate<number>('document.documentElement.scrollWidth - innerWidth');
      expect(overflow).toBeLessThanOrEqual(0);
      expect(await page().evaluate<string[]>(CUT_NAMES)).toEqual([]);
      if (!moves) expect(await layoutShift(page())).toBeLessThanOrEqual(MAX_SHIFT);
      if (name !== null) await picture(name, width === PHONE_PX ? 'phone' : 'light');
      if (width !== PHONE_PX) {
        await turn('dark');
        // Only the colours differ.
        expect(['dark', await violations(['color-contrast'])]).toEqual(['dark', []]);
        if (name !== null) await picture(name, 'dark');
      }
      expect([width, await unreachableByKeyboard(page())]).toEqual([width, []]);
    }
  };

  return { violations, picture, lookAt };
}
