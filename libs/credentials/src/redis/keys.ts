/** One slot for all keys, so that changes have one order (lua/credentials.lua). */
export const KEYS = ['records', 'changes', 'meta', 'ends'].map((name) => `tgc:{credentials}:${name}`);
