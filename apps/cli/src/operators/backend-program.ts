import type { Command } from 'commander';
import type { Context } from '../command/context';
import { group, leaf } from '../command/leaf';
import { table } from '../command/table';

const PATH = '/backends';
const NAME = 'https://gpu-1.internal:8000/v1';

interface BackendRow {
  backend: string;
  models: { id: string; weight: number }[];
  drainedAt: string | null;
}

export function addBackendCommands(program: Command, context: (options: object) => Context): void {
  const backend = group(program, 'backend', "the models' backends", 'backend list', `backend drain ${NAME}`);
  leaf(backend, 'list', 'list the backends of tollgate.yaml, and which are drained', 'backend list').action(
    (options: object) => listBackends(context(options)),
  );
  leaf(
    backend,
    'drain <backend>',
    'stop sending new calls to a backend, within about a second; running calls continue',
    `backend drain ${NAME}`,
  ).action((name: string, options: object) => change(context(options), 'drain', name));
  leaf(backend, 'enable <backend>', 'resume sending calls to a drained backend', `backend enable ${NAME}`).action(
    (name: string, options: object) => change(context(options), 'enable', name),
  );
}

async function listBackends({ client, output }: Context): Promise<void> {
  const { data } = await client.get<{ data: BackendRow[] }>(PATH);
  const cells = data.map(({ backend, models, drainedAt }) => [
    backend,
    models.map(({ id, weight }) => `${id}:${weight}`).join(' ') || '-',
    drainedAt ?? '-',
  ]);
  output.answer(data, table(['BACKEND', 'MODELS AND WEIGHTS', 'DRAINED'], cells, 'tollgate.yaml names no backend.'));
}

async function change({ client, output }: Context, what: 'drain' | 'enable', backend: string): Promise<void> {
  const { data } = await client.post<{ data: { backend: string; drainedAt: string | null } }>(`${PATH}/${what}`, {
    backend,
  });
  output.answer(
    data,
    what === 'drain'
      ? `${backend} gets no new calls. Enable it again: tollgate backend enable ${backend}`
      : `${backend} gets calls again.`,
  );
}
