import { readFileSync, statSync } from 'node:fs';
import type { Service, ServicePair } from '@tollgate/contracts';
import { Counter, fileProblem, logger, metrics, StartError } from '@tollgate/runtime';
import { BadKeysError, MessageKeys, readKeysOf, type KeyRing, type MessageKey } from './message-keys';

const POLL_INTERVAL_MS = 1_000;
const MAX_FILE_BYTES = 64 * 1024;
const CURE = 'make the files with "tollgate message-keys create DIR", and give each service its own';

const reloads = new Counter({
  name: 'tollgate_message_keys_reloads_total',
  help: 'Changes of the message keys, by result: accepted, refused (the old keys stay)',
  labelNames: ['result'],
  registers: [metrics],
});

/**
 * The keys of one service, from its file. Reads the file at construction (throws StartError) and again when it changes,
 * so a rotation needs no restart. An invalid version is refused, and the old keys stay. The file is polled, because
 * notifications miss a mounted or replaced file.
 */
export class KeysFile implements KeyRing {
  private keys: MessageKeys;
  /** The version in force. */
  private seen: string;
  /** The last logged problem, so that it is logged once. */
  private refused = '';
  private lookedAtMs = performance.now();
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly file: string,
    private readonly service: Service,
  ) {
    // The state is taken before the file is read, so a change in between is found at the next poll.
    this.seen = this.look();
    try {
      this.keys = this.read();
    } catch (error) {
      throw new StartError(`TOLLGATE_MESSAGE_KEYS_FILE: ${file} ${describeProblem(error)}: ${CURE}`);
    }
    this.timer = setInterval(() => this.followChange(), POLL_INTERVAL_MS);
    this.timer.unref();
  }

  signing(pair: ServicePair): MessageKey | undefined {
    return this.keys.signing(pair);
  }

  /** An unknown key may just have been added, so the file is checked, at most once in POLL_INTERVAL_MS. */
  named(pair: ServicePair, id: string): MessageKey | undefined {
    const known = this.keys.named(pair, id);
    if (known || performance.now() - this.lookedAtMs < POLL_INTERVAL_MS) return known;
    this.followChange();
    return this.keys.named(pair, id);
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** Distinguishes versions of the file. Empty if there is none. */
  private look(): string {
    try {
      const { ino, size, mtimeMs } = statSync(this.file);
      return `${ino}:${size}:${mtimeMs}`;
    } catch {
      return '';
    }
  }

  private read(): MessageKeys {
    const text = readFileSync(this.file, 'utf8');
    if (text.length > MAX_FILE_BYTES) throw new BadKeysError([`it is over ${MAX_FILE_BYTES} bytes`]);
    return new MessageKeys(readKeysOf(this.service, text));
  }

  private followChange(): void {
    this.lookedAtMs = performance.now();
    const now = this.look();
    if (now === this.seen) return;
    try {
      this.keys = this.read();
      // Set only now: after a temporary read error the file must be read again, although its state does not change.
      this.seen = now;
      this.refused = '';
      reloads.inc({ result: 'accepted' });
      logger('messaging').info({ file: this.file }, 'the message keys were read again');
    } catch (error) {
      const why = describeProblem(error);
      if (this.refused === `${now} ${why}`) return;
      this.refused = `${now} ${why}`;
      reloads.inc({ result: 'refused' });
      logger('messaging').error(`the old message keys stay in force: ${this.file} ${why}: ${CURE}`);
    }
  }
}

function describeProblem(error: unknown): string {
  if (error instanceof BadKeysError) return `cannot be used (${error.problems.join('; ')})`;
  return `cannot be read (${fileProblem(error)})`;
}
