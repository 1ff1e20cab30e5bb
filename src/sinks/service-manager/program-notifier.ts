import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Notification } from '../../streams/notifications';
import type { Notifier } from './notifier';

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
