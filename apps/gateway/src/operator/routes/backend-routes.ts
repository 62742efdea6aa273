import { body } from '../../openapi/operation';
import type { RouteTable } from '../../openapi/route-table';
import type { OperatorEndpoint } from '../endpoint';
import { BackendDrain, BackendList, BackendNamed } from '../backends/backend-schemas';

const EXAMPLE = { backend: 'https://gpu-1.internal:8000/v1' };

/** The routes of the models' backends. */
export const BACKEND_ROUTES: RouteTable<OperatorEndpoint> = {
  '/backends': {
    get: {
      id: 'listBackends',
      tag: 'Backends',
      scope: 'read',
      summary: 'List the backends of tollgate.yaml',
      description: 'In the order of the file, then those that left it while they were drained.',
      success: [['200', 'The backends.', BackendList]],
    },
  },
  '/backends/drain': {
    post: {
      id: 'drainBackend',
      tag: 'Backends',
      scope: 'backends',
      change: 'backend.drain',
      summary: 'Stop sending new calls to a backend',
      description:
        'For all its models, on every replica, about a second after the answer, until it is enabled. Running ' +
        'calls go on.',
      body: body(BackendNamed, EXAMPLE),
      success: [['200', 'The backend.', BackendDrain]],
      errors: ['not_found', 'invalid_backend'],
    },
  },
  '/backends/enable': {
    post: {
      id: 'enableBackend',
      tag: 'Backends',
      scope: 'backends',
      change: 'backend.enable',
      summary: 'Send calls to a backend again',
      description:
        'On every replica, about a second after the answer. Also one that left `tollgate.yaml` while it was drained.',
      body: body(BackendNamed, EXAMPLE),
      success: [['200', 'The backend.', BackendDrain]],
      errors: ['not_found', 'invalid_backend'],
    },
  },
};
