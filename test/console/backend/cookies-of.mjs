// Prints the cookies of the sign-in library for the public origin of the argument. Jest cannot load the library.
import pg from 'pg';
import library from '../../../apps/console/dist/sign-in/better-auth.js';

// Never connects: only the names and attributes of the cookies are asked for.
const pool = new pg.Pool({ connectionString: 'postgresql://127.0.0.1:1/none' });
const options = { secret: 'a'.repeat(64), origin: process.argv[2], oidc: null, asksIssuer: false };
const { $context } = library.signInLibrary({ pool, ...options });
process.stdout.write(JSON.stringify((await $context).authCookies));
await pool.end();
