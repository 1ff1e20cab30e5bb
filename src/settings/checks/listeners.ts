import type { Field, SettingsView } from '../settings';
import type { HostPort } from '../values/addresses';
import { check } from './check';

interface Listener<Seen extends Field> {
  readonly concerns: readonly Seen[];
  /** The setting that says the port. */
  readonly named: Seen;
  /** Undefined when nothing listens there. */
  readonly address: (view: SettingsView<Seen>) => HostPort | undefined;
}

function listener<const Seen extends Field>(
  concerns: readonly Seen[],
  named: NoInfer<Seen>,
  address: (view: SettingsView<Seen>) => HostPort | undefined,
): Listener<Seen> {
  return { concerns, named, address };
}

const listeners = [
  listener(['host', 'port'], 'port', ({ settings: { host, port } }) => ({ host, port })),
  listener(['grpcHost', 'grpcPort', 'grpcUds'], 'grpcPort', ({ settings: { grpcHost, grpcPort, grpcUds } }) =>
    grpcUds === undefined ? { host: grpcHost, port: grpcPort } : undefined,
  ),
  listener(['debugHost', 'debugPort'], 'debugPort', ({ settings }) => ({
    host: settings.debugHost,
    port: settings.debugPort,
  })),
  listener(['usePullmetrics', 'pullmetricsAddr'], 'pullmetricsAddr', ({ settings }) =>
    settings.usePullmetrics ? settings.pullmetricsAddr : undefined,
  ),
] as readonly Listener<Field>[];

function isEveryAddress(host: string) {
  return host === '0.0.0.0' || host === '::';
}

function collide(one: HostPort, other: HostPort): boolean {
  const share = one.host === other.host || isEveryAddress(one.host) || isEveryAddress(other.host);
  return one.port !== 0 && one.port === other.port && share;
}

/** Two listeners cannot have one port. (The Go service lets the kernel deal the calls out between them.) */
export const listenerChecks = listeners.flatMap((one, index) =>
  listeners.slice(index + 1).map((other) =>
    check([...one.concerns, ...other.concerns], (view) => {
      const [first, second] = [one.address(view), other.address(view)];
      return first !== undefined && second !== undefined && collide(first, second)
        ? `${view.nameOf(one.named)} and ${view.nameOf(other.named)} are both port ${first.port}; each listener needs its own.`
        : undefined;
    }),
  ),
);
