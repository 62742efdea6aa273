import { readFunctionLibrary } from '@tollgate/redis';
import { join } from 'node:path';

const FAMILY = 'tollgate_admission_v1'; // The seam, and the version of its data.

/** The functions that the store calls in Redis (lua/). */
export const admissionLibrary = () => readFunctionLibrary(FAMILY, join(__dirname, 'lua'));
