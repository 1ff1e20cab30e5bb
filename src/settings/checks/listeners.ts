import type { Field, SettingsView } from '../settings';
import type { HostPort } from '../values/addresses';
import { check } from './check';

interface Listener<Fields extends Field> {
  readonly concerns: readonly Fields[];
  /** The setting of its port. */
  readonly portField: Fields;
  /** Undefined when the listener is not used. */
  readonly address: (view: SettingsView<Fields>) => HostPort | undefined;
}

function listener<const Fields extends Field>(
  concerns: readonly Fields[],
  portField: NoInfer<Fields>,
  address: (view: SettingsView<Fields>) => HostPort | undefined,
): Listener<Fields> {
  return { concerns, portField, address };
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
  listener(['disableStats', 'usePullmetrics', 'pullmetricsAddr'], 'pullmetricsAddr', ({ settings }) =>
    settings.usePullmetrics && !settings.disableStats ? settings.pullmetricsAddr : undefined,
  ),
] as readonly Listener<Field>[];

function isEveryAddress(host: string) {
  return host === '0.0.0.0' || host === '::';
}

function collide(one: HostPort, other: HostPort): boolean {
  const sameHost = one.host === other.host || isEveryAddress(one.host) || isEveryAddress(other.host);
  return one.port !== 0 && one.port === other.port && sameHost;
}

/** Two listeners cannot share a port. (In the Go service the kernel would distribute the connections between them.) */
export const listenerChecks = listeners.flatMap((one, index) =>
  listeners.slice(index + 1).map((other) =>
    check([...one.concerns, ...other.concerns], (view) => {
      const [first, second] = [one.address(view), other.address(view)];
      return first !== undefined && second !== undefined && collide(first, second)
        ? `${view.nameOf(one.portField)} and ${view.nameOf(other.portField)} both use port ${first.port}; give each listener its own port.`
        : undefined;
    }),
  ),
);
