import { useTestDatabase } from '@tollgate/testing';
import { useDataDirectory } from '../../e2e/standalone-process';
import { startConsole, type RunningConsole } from '../running/running-console';
import { Network, outageTests } from './outage.part';
import { proxiedTests } from './proxied.part';

// A console behind a proxy, with a network to PostgreSQL that can be taken away.
afterAll(async () => {
  await console_?.stop();
  network?.leave();
});
const database = useTestDatabase();
const directory = useDataDirectory();
let network: Network;
let console_: RunningConsole;
beforeAll(async () => {
  network = new Network(database.url);
  console_ = await startConsole({
    ...{ DATABASE_URL: await network.arrive(), TOLLGATE_DATA_DIR: directory.path },
    TOLLGATE_TRUSTED_PROXIES: 'loopback',
  });
});

proxiedTests(() => console_);
outageTests(() => ({ console_, network }));
