import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Notification } from '../streams/notifications';

/** Sends messages to a service manager, in the protocol of systemd. */
export interface Notifier {
  /** Resolves when the manager has the message; rejects when it cannot be delivered. */
  send(notification: Notification): Promise<void>;
}

/**
 * Sends each message from this process itself.
 *
 * @param path the socket of the manager, which is not an abstract one: the native package that sends to it does not
 * support these
 * @throws on machines for which that package has no binary
 */
export async function datagramNotifier(path: string): Promise<Notifier> {
  const { UnixDatagramSender } = await import('./statistics/unix-datagram-sender.js');
  return new UnixDatagramSender(path);
}

const PROGRAM = 'systemd-notify';
/** Milliseconds. The program itself waits up to 5 s for the manager to have read the message. */
const TIMEOUT = 10_000;

/**
 * Sends each message with the program of systemd: a process of its own, with an id that is not that of the service.
 *
 * @param socket as in `NOTIFY_SOCKET`
 */
export function programNotifier(socket: string): Notifier {
  const start = promisify(execFile);
  // Nothing else of the environment, which has secrets. Without PATH, the program is searched for in /bin and /usr/bin.
  const env = { NOTIFY_SOCKET: socket };
  return {
    send: async (notification: Notification) => {
      await start(PROGRAM, notification, { env, timeout: TIMEOUT });
    },
  };
}
