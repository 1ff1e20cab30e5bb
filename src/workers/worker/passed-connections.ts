import type { Socket } from 'node:net';
import type { ListenerName, Passed, SocketNotice } from '../messages';

/** The IPC channel of a worker: a part of `process`. */
export interface IpcChannel {
  on(event: 'message', listener: (message: Passed, socket: Socket | undefined) => void): unknown;
  send?(message: SocketNotice, handle: undefined, options: undefined, sent: () => void): boolean;
}

/**
 * Receives the connections that the primary has accepted, and reports for each that it is here and later that it is closed.
 *
 * @param serve called with each socket, from which nothing was read yet
 */
export function receiveConnections(ipc: IpcChannel, serve: (listener: ListenerName, socket: Socket) => void): void {
  function notify(notice: SocketNotice): void {
    // Without the callback, an error after the end of the primary would end the process.
    ipc.send?.(notice, undefined, undefined, () => undefined);
  }
  ipc.on('message', ({ id, listener }, socket) => {
    notify({ taken: id });
    // Also when the process had no file descriptor left to receive it with.
    if (socket === undefined) return notify({ closed: id });
    socket.once('close', () => notify({ closed: id }));
    return serve(listener, socket);
  });
}
