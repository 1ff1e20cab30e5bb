import { type Environment, lookUp } from './variables';

/** The listeners whose sockets the service manager can pass on. */
const SOCKETS = ['grpc', 'http', 'debug', 'metrics'] as const;

export type SocketName = (typeof SOCKETS)[number];

/** What a service manager such as systemd has put into the environment; it is no setting of the user. */
export interface ServiceManager {
  /** Where the manager receives notifications: the path of a datagram socket, or `@` and its abstract name. */
  readonly notifySocket: string | undefined;
  /** Milliseconds within which the manager expects the next sign of life; undefined without a watchdog. */
  readonly watchdog: number | undefined;
  /** The file descriptors of listening sockets, by the name of their listener. */
  readonly sockets: Readonly<Partial<Record<SocketName, number>>>;
}

/** The first file descriptor that is passed on, by the protocol. */
const FIRST_SOCKET = 3;
/** The most sockets that are passed on: more is a mistake in the units. */
const COUNT = /^[0-9]{1,3}$/;
const MICROSECONDS_IN_MILLISECOND = 1000;

/**
 * Reads the variables of the protocols of systemd: `NOTIFY_SOCKET`, `WATCHDOG_USEC`, `LISTEN_FDS` and their companions.
 *
 * @param pid the process: variables that are meant for another one, as in its children, are ignored
 * @param problems receives a sentence for each problem
 */
export function readServiceManager(environment: Environment, pid: number, problems: string[]): ServiceManager {
  return {
    notifySocket: textOf(environment, 'NOTIFY_SOCKET'),
    watchdog: watchdogOf(environment, pid, problems),
    sockets: socketsOf(environment, pid, problems),
  };
}

function watchdogOf(environment: Environment, pid: number, problems: string[]): number | undefined {
  const text = textOf(environment, 'WATCHDOG_USEC');
  const owner = textOf(environment, 'WATCHDOG_PID');
  if (text === undefined || (owner !== undefined && owner !== String(pid))) return undefined;
  const microseconds = Number(text);
  if (/^[0-9]+$/.test(text) && microseconds >= MICROSECONDS_IN_MILLISECOND)
    return microseconds / MICROSECONDS_IN_MILLISECOND;
  problems.push(`WATCHDOG_USEC="${text}" is invalid; allowed: whole number of microseconds, at least 1000.`);
  return undefined;
}

function socketsOf(environment: Environment, pid: number, problems: string[]): ServiceManager['sockets'] {
  const count = textOf(environment, 'LISTEN_FDS');
  if (count === undefined || textOf(environment, 'LISTEN_PID') !== String(pid)) return {};
  if (!COUNT.test(count)) {
    problems.push(`LISTEN_FDS="${count}" is invalid; allowed: whole number up to 999.`);
    return {};
  }
  const names = textOf(environment, 'LISTEN_FDNAMES')?.split(':') ?? [];
  const sockets: Partial<Record<SocketName, number>> = {};
  for (let index = 0; index < Number(count); index += 1) {
    const name = SOCKETS.find((known) => known === names[index]);
    if (name === undefined) {
      problems.push(
        `LISTEN_FDNAMES names socket ${index + 1} of ${count} "${names[index] ?? ''}"; set ` +
          'FileDescriptorName= in its unit to ' +
          `${SOCKETS.slice(0, -1).join(', ')} or ${SOCKETS.at(-1)}.`,
      );
    } else if (sockets[name] === undefined) sockets[name] = FIRST_SOCKET + index;
    else problems.push(`LISTEN_FDNAMES names several sockets "${name}"; a listener takes one.`);
  }
  return sockets;
}

function textOf(environment: Environment, name: string): string | undefined {
  return lookUp(environment, [name])[0]?.text;
}
