/** The database and the code do not fit: tells which and what to do. */
export class MigrationError extends Error {}
