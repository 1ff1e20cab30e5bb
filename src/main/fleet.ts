import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type SecureContext, createSecureContext } from 'node:tls';
import { VERSION } from '../version';
import type { CurrentToken } from '../http/operators/authorization';
import { peersAt } from '../http/operators/peers';
import { trustedRoots } from '../net/trusted-roots';
import type { FindPeers } from '../operators/fleet';
import { LONGEST_REPORTED } from '../operators/merge-reports';
import type { OperatorOptions } from '../operators/operator';
import type { SettingLine } from '../settings/list-settings';
import type { Field } from '../settings/settings';
import { boundedText } from '../text/table-key';
import { parsePeer } from '../settings/values/addresses';
import type { App } from './app';

/** What may differ between instances: where each is, and what it is called. */
const OF_ONE: readonly Field[] = [
  ...(['host', 'port', 'grpcHost', 'grpcPort', 'grpcUds', 'debugHost', 'debugPort', 'pullmetricsAddr'] as const),
  ...(['operatorPeers', 'configGrpcXdsNodeId', 'extraTags'] as const),
];

/**
 * What this instance is among others. @param lines its settings, of which those that are set should be the same in all
 */
export function instanceOf({ nameOf }: App, lines: readonly SettingLine[]): OperatorOptions['instance'] {
  const ofOne = new Set(OF_ONE.map(nameOf));
  const compared = lines.filter(({ name, source }) => source !== 'default' && !ofOne.has(name));
  return {
    ...{ id: randomUUID(), name: hostname(), version: VERSION, startedAt: new Date().toISOString() },
    settings: Object.fromEntries(compared.map(({ name, value }) => [name, boundedText(value ?? '', LONGEST_REPORTED)])),
  };
}

/**
 * The other instances; undefined when they are not set.
 *
 * @param ownCertificate what the debug listener presents now, PEM; all instances may have the same, which no authority
 * needs to have issued
 */
export function peersOf(
  { settings }: App,
  currentToken: CurrentToken,
  ownCertificate: () => string | undefined,
): FindPeers | undefined {
  if (settings.operatorPeers.length === 0) return undefined;
  let context: SecureContext | undefined;
  return peersAt({
    addresses: settings.operatorPeers.flatMap((text) => parsePeer(text) ?? []),
    currentToken,
    trust: () => {
      context ??= createSecureContext({ ca: [...trustedRoots()] });
      return { context, known: ownCertificate() };
    },
  });
}
