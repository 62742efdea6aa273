import { inference } from './boards/inference.mjs';
import { books } from './boards/money.mjs';
import { service } from './boards/service.mjs';
import { stores } from './boards/stores.mjs';

/**
 * The dashboards as tables: rows of panels with their queries, by the name of the file. dashboards.mjs makes Grafana's
 * JSON from them.
 */
export const BOARDS = { service, inference, money: books, stores };
