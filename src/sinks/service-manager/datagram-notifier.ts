import type { Notification } from '../../streams/notifications';
import { UnixDatagramSender } from '../statistics/senders/unix-datagram-sender';
import type { Notifier } from './notifier';

/**
 * Sends each message from this process itself. Importing this module fails on machines for which the native package that it
 * uses has no binary.
 *
 * @param path the socket of the manager, which is not an abstract one: the package does not support these
 */
export async function datagramNotifier(path: string): Promise<Notifier> {
  const sender = new UnixDatagramSender({ path });
  await sender.open();
  return { send: (notification: Notification) => sender.send(notification) };
}
