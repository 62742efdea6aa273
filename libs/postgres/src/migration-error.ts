/** The database does not fit the code. The message says how, and what to do. */
export class MigrationError extends Error {}
