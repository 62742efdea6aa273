/** One slot for all, so that changes have one order (lua/credentials.lua). */
export const KEYS = ['records', 'changes', 'meta', 'ends'].map((name) => `tgc:{credentials}:${name}`);
