import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { VERSION } from '../cli/version';
import type { CurrentToken } from '../http/operators/authorization';
import { peersAt } from '../http/operators/peers';
import { ConditionLog } from '../log/condition-log';
import { clientTls } from '../net/reloaded-files';
import type { FindPeers } from '../operators/fleet';
import type { OperatorOptions } from '../operators/operator';
import type { SettingLine } from '../settings/list-settings';
import type { Field } from '../settings/settings';
import { parsePeer } from '../settings/values/addresses';
import type { App } from './app';

/** What may differ between instances: where each is, and what it is called. */
const OF_ONE: readonly Field[] = [
  ...(['host', 'port', 'grpcHost', 'grpcPort', 'grpcUds', 'debugHost', 'debugPort', 'pullmetricsAddr'] as const),
  ...(['operatorPeers', 'configGrpcXdsNodeId', 'extraTags'] as const),
];

/** What this instance is among others. @param lines its settings, of which those that are set should be the same in all */
export function instanceOf({ nameOf }: App, lines: readonly SettingLine[]): OperatorOptions['instance'] {
  const ofOne = new Set(OF_ONE.map(nameOf));
  const compared = lines.filter(({ name, source }) => source !== 'default' && !ofOne.has(name));
  return {
    ...{ id: randomUUID(), name: hostname(), version: VERSION, startedAt: new Date().toISOString() },
    settings: Object.fromEntries(compared.map(({ name, value }) => [name, value ?? ''])),
  };
}

/** The other instances; undefined when they are not set. */
export function peersOf({ settings, log }: App, currentToken: CurrentToken): FindPeers | undefined {
  if (settings.operatorPeers.length === 0) return undefined;
  const rejections = new ConditionLog(log, {
    begins: 'the certificates of other instances are checked by the last ones',
  });
  return peersAt({
    addresses: settings.operatorPeers.flatMap((text) => parsePeer(text) ?? []),
    currentToken,
    context: clientTls({ ca: undefined, cert: undefined, key: undefined }, rejections),
  });
}
