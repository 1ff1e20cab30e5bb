import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type SecureContext, createSecureContext } from 'node:tls';
import { VERSION } from '../version';
import type { CurrentToken } from '../http/operators/authorization';
import { peersAt } from '../http/operators/peers';
import { trustedRoots } from '../net/trusted-roots';
import type { FindPeers } from '../operators/fleet/fleet';
import type { ListedSetting } from '../operators/answers';
import { LONGEST_REPORTED } from '../operators/fleet/merge-reports';
import type { OperatorOptions } from '../operators/operator';
import { currentSecret } from '../sources/secret-files';
import type { Field } from '../settings/settings';
import { boundedText } from '../text/table-key';
import { namesOf } from '../settings/table/setting';
import { settingRows } from '../settings/table/settings-table';
import { listenPath, parsePeer } from '../settings/values/addresses';
import { port } from '../settings/values/numbers';
import { filePath } from '../settings/values/value-type';
import type { App } from './app';

/** What may differ between instances, in addition to ports and paths: where each is, and what it is called. */
const OF_ONE: readonly Field[] = [
  ...(['host', 'grpcHost', 'debugHost', 'debugAllowedHosts', 'pullmetricsAddr', 'operatorPeers'] as const),
  ...(['instanceName', 'configGrpcXdsNodeId', 'tracingServiceInstanceId', 'extraTags'] as const),
];
const OF_ONE_TYPES: readonly unknown[] = [port, filePath, listenPath];

/** The names of the settings that may differ between instances. */
export function expectedDifferences({ settings }: Pick<App, 'settings'>): ReadonlySet<string> {
  const rows = settingRows.filter(({ field, type }) => OF_ONE.includes(field) || OF_ONE_TYPES.includes(type));
  return new Set([...rows.flatMap(namesOf), ...settings.operatorExpectedDifferences]);
}

/** What this instance is among others. @param lines its settings, of which it reports those that are set */
export function instanceOf({ settings }: App, lines: readonly ListedSetting[]): OperatorOptions['instance'] {
  const set = lines.filter(({ source }) => source !== 'default');
  return {
    ...{ id: randomUUID(), name: settings.instanceName ?? hostname(), version: VERSION },
    startedAt: new Date().toISOString(),
    settings: Object.fromEntries(set.map(({ name, value }) => [name, boundedText(value ?? '', LONGEST_REPORTED)])),
  };
}

/**
 * The other instances; undefined when they are not set.
 *
 * @param ownCertificate what the debug listener presents now, PEM; all instances may have the same, which no authority
 * needs to have issued
 */
export function peersOf(
  app: App,
  currentToken: CurrentToken,
  ownCertificate: () => string | undefined,
): FindPeers | undefined {
  const { settings, log } = app;
  if (settings.operatorPeers.length === 0) return undefined;
  const peersToken = currentSecret(app, 'operatorPeersToken', { log });
  let context: SecureContext | undefined;
  return peersAt({
    addresses: settings.operatorPeers.flatMap((text) => parsePeer(text) ?? []),
    currentToken: () => peersToken() ?? currentToken(),
    trust: () => {
      context ??= createSecureContext({ ca: [...trustedRoots()] });
      return { context, known: ownCertificate() };
    },
  });
}
