import { type NameTolerance, VARIABLE_TOLERANCE, nearestName } from '../text/nearest-name';
import { isMogrifierVariable } from './mogrifiers';
import type { ServiceManager } from './service-manager';
import type { Settings } from './settings';
import type { Condition, StateOf } from './table/condition';
import { type Setting, conditionsOf, fileNamesOf, namesOf } from './table/setting';
import { settingRows, settingsTable } from './table/settings-table';
import { type Environment, type Variable, lookUp } from './variables';

/** The settings of a process, by neutral name. */
export interface SettingStates {
  readonly stateOf: StateOf;
  /** Whether the setting is not set, or set to a valid value. */
  readonly isValid: (name: string) => boolean;
}

/** One warning for each setting that is set and has no effect, because it is deprecated or because of another setting. */
export function findIneffectiveSettings(states: SettingStates): string[] {
  return settingsTable.flatMap((group) =>
    group.settings.flatMap((setting: Setting) => {
      const { variable, isGiven } = states.stateOf(setting.name);
      if (!isGiven || !states.isValid(setting.name) || isSwitchedOff(setting, states)) return [];
      if (setting.isDeprecated === true) return [`${variable} is deprecated and has no effect; remove it.`];
      const reason = findUnmetCondition(conditionsOf(setting, group), states);
      return reason === undefined ? [] : [noEffect(variable, reason)];
    }),
  );
}

/** The warning that a variable has no effect. */
export function noEffect(variable: string, reason: string): string {
  return `${variable} has no effect, because ${reason}.`;
}

/** Why the first of the conditions that does not hold does not hold; undefined when all hold. */
export function findUnmetCondition(conditions: readonly Condition[], states: SettingStates): string | undefined {
  for (const { names, failure } of conditions) {
    if (!names.every(states.isValid)) return undefined;
    const reason = failure(states.stateOf);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** Switching something off that is off anyway needs no warning; nor does 0 for a deprecated number. */
function isSwitchedOff(setting: Setting, { stateOf }: SettingStates): boolean {
  const { value } = stateOf(setting.name);
  return (value === 'false' && setting.default !== true) || (setting.isDeprecated === true && value === '0');
}

const knownNames = new Set(settingRows.flatMap((row) => [...namesOf(row), ...fileNamesOf(row)]));

/** A warning for each variable that is set and is probably meant as a setting, but is none. */
export function findUnknownVariables(environment: Environment): string[] {
  return lookUp(environment, Object.keys(environment)).flatMap((variable) => {
    const { name } = variable;
    if (knownNames.has(name) || isMogrifierVariable(name) || isOfOthers(variable)) return [];
    const isOurs = OUR_PREFIX.test(name);
    const nearest = nearestName(name, knownNames, isOurs ? OUR_TOLERANCE : VARIABLE_TOLERANCE);
    if (nearest !== undefined) return [`${name} is not a setting and has no effect; did you mean ${nearest}?`];
    return isOurs ? [`${name} is not a setting and has no effect.`] : [];
  });
}

/** How variables begin that are hardly meant for another program. */
const OUR_PREFIX = new RegExp(
  `^(?:${[
    ...['KVSTORE', 'REDIS', 'PLAINCACHE', 'MEMCACHE', 'PUSHSTATS', 'STATSD', 'TAGGEDSTATS', 'DOG_STATSD'],
    ...['PULLMETRICS', 'PROMETHEUS', 'GRPC', 'XDS', 'CONFIG', 'RUNTIME', 'TRACING'],
  ].join('|')})_`,
);

/** With such a beginning, even short names resemble each other for a reason. */
const OUR_TOLERANCE: NameTolerance = {
  maxEdits: (length) => Math.max(1, VARIABLE_TOLERANCE.maxEdits(length)),
};

/** Variables that Kubernetes sets in every pod for each service of its namespace, which may have such a name as redis. */
const SERVICE_LINK = /_SERVICE_(?:HOST|PORT(?:_\w+)?)$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/;

/** Variables of the gRPC libraries, here and in the Go service. */
const GRPC_LIBRARY =
  /^GRPC_(?:VERBOSITY|TRACE|SSL_CIPHER_SUITES|DEFAULT_SSL_ROOTS_FILE_PATH|(?:NODE|EXPERIMENTAL|GO)_\w+)$/;

/** Whether a variable is one that others set or read. */
function isOfOthers({ name, text }: Variable): boolean {
  const isLink = SERVICE_LINK.test(name) || (name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(text));
  return isLink || GRPC_LIBRARY.test(name);
}

/** A warning about a socket on which connections would wait, because nothing accepts them. */
export function findUnusedSockets({ sockets }: ServiceManager, { disableStats, usePullmetrics }: Settings): string[] {
  if (sockets.metrics === undefined || (usePullmetrics && !disableStats)) return [];
  const reason = disableStats ? 'DISABLE_STATS is true' : 'USE_PULLMETRICS is false';
  return [`the socket "metrics" of the service manager has no effect, because ${reason}`];
}
