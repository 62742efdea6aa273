/** One slot for all, so that changes have one order (lua/credentials.lua). */
export const KEYS = ['tgc:{credentials}:records', 'tgc:{credentials}:changes', 'tgc:{credentials}:meta'];
