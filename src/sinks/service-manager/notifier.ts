import type { Notification } from '../../streams/notifications';

/** Sends messages to a service manager, in the protocol of systemd. */
export interface Notifier {
  /** Resolves when the manager has the message; rejects when it cannot be delivered. */
  send(notification: Notification): Promise<void>;
}
