import { type NameTolerance, VARIABLE_TOLERANCE, nearestName } from '../text/nearest-name';
import { mogrifierOf, mogrifierVariables } from './mogrifiers';
import type { ServiceManager } from './service-manager';
import { type StateOf, findUnmet } from './table/condition';
import { TAGGED_OUTPUT } from './table/outputs';
import { fileNamesOf, namesOf } from './table/setting';
import { type TableRow, settingRows } from './table/settings-table';
import { type Environment, type Variable, lookUp } from './variables';

/** What warnings are about: the settings, by neutral name, and what the environment contains besides. */
export interface Warned {
  readonly environment: Environment;
  readonly stateOf: StateOf;
  readonly manager: ServiceManager;
}

/** What is set and has no effect: warnings, one sentence each, and the variables that need none. */
export function findIneffective({ environment, stateOf, manager }: Warned) {
  const settings = settingRows.flatMap((row) => (isSetAnyway(row, stateOf) ? [] : ineffectiveSetting(row, stateOf)));
  const variables = lookUp(environment, Object.keys(environment));
  const ignored = variables.filter((variable) => isSetAnyway(variable, stateOf));
  const others = variables.filter((variable) => !ignored.includes(variable));
  return {
    warnings: [
      ...unusedMogrifiers(environment, stateOf),
      ...settings,
      ...unknownVariables(others),
      ...unusedSockets(manager, stateOf),
    ],
    ignored: ignored.map(({ name }) => name),
  };
}

/**
 * Whether deployments made for the Go service set a variable whether or not it has an effect: Envoy Gateway sets those
 * of rule files next to an xDS server, and one that the Go service does not read either.
 */
function isSetAnyway({ name }: { readonly name: string }, stateOf: StateOf): boolean {
  if (name === 'GRPC_SERVER_TLS_CA_CERT') return true;
  return name.startsWith('RUNTIME_') && knownNames.has(name) && stateOf('CONFIG_TYPE').value !== 'FILE';
}

/** A setting has no effect because it is deprecated, or because of another setting. */
function ineffectiveSetting(setting: TableRow, stateOf: StateOf): readonly string[] {
  const { variable, isGiven, isValid, value } = stateOf(setting.name);
  // Switching something off that is off anyway needs no warning; nor does 0 for a deprecated number.
  const isOff = (value === 'false' && setting.default !== true) || (setting.isDeprecated === true && value === '0');
  if (!isGiven || !isValid || isOff) return [];
  if (setting.isDeprecated === true) return [`${variable} is deprecated and has no effect; remove it.`];
  const reason = findUnmet(setting.conditions, stateOf);
  return reason === undefined ? [] : [noEffect(variable, reason)];
}

function unusedMogrifiers(environment: Environment, stateOf: StateOf): readonly string[] {
  const reason = findUnmet([TAGGED_OUTPUT], stateOf);
  return reason === undefined ? [] : mogrifierVariables(environment).map((name) => noEffect(name, reason));
}

/** The warning that a variable has no effect. */
function noEffect(variable: string, reason: string): string {
  return `${variable} has no effect, because ${reason}.`;
}

const knownNames = new Set(settingRows.flatMap((row) => [...namesOf(row), ...fileNamesOf(row)]));

/** A warning for each variable that is set and is probably meant as a setting, but is none. */
function unknownVariables(variables: readonly Variable[]): readonly string[] {
  return variables.flatMap((variable) => {
    const { name } = variable;
    if (knownNames.has(name) || mogrifierOf(name) !== undefined || isOfOthers(variable)) return [];
    const isOurs = OUR_PREFIXES.some((prefix) => name.startsWith(prefix));
    const nearest = nearestName(name, knownNames, isOurs ? OUR_TOLERANCE : VARIABLE_TOLERANCE);
    if (nearest !== undefined) return [`${name} is not a setting and has no effect; did you mean ${nearest}?`];
    return isOurs ? [`${name} is not a setting and has no effect.`] : [];
  });
}

/** How variables begin that are hardly meant for another program. */
const OUR_PREFIXES = [
  ...['KVSTORE_', 'REDIS_', 'PLAINCACHE_', 'MEMCACHE_', 'PUSHSTATS_', 'STATSD_', 'TAGGEDSTATS_', 'DOG_STATSD_'],
  ...['PULLMETRICS_', 'PROMETHEUS_', 'GRPC_', 'XDS_', 'CONFIG_', 'RUNTIME_', 'TRACING_'],
];

/** With such a beginning, even short names resemble each other for a reason. */
const OUR_TOLERANCE: NameTolerance = { maxEdits: (length) => Math.max(1, VARIABLE_TOLERANCE.maxEdits(length)) };

/**
 * Variables that Kubernetes sets in every pod for each service of its namespace, which may have such a name as redis.
 */
const SERVICE_LINK = /_SERVICE_(?:HOST|PORT(?:_\w+)?)$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/;

/** In characters, of what follows the name of a service, which has at most 63. */
const LONGEST_LINK = 256;

/** Variables of the gRPC libraries, here and in the Go service. */
const GRPC_LIBRARY =
  /^GRPC_(?:VERBOSITY|TRACE|SSL_CIPHER_SUITES|DEFAULT_SSL_ROOTS_FILE_PATH|(?:NODE|EXPERIMENTAL|GO)_\w+)$/;

/** Whether a variable is one that others set or read. */
function isOfOthers({ name, text }: Variable): boolean {
  const isLink =
    SERVICE_LINK.test(name.slice(-LONGEST_LINK)) || (name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(text));
  return isLink || GRPC_LIBRARY.test(name);
}

/** A warning about a socket on which connections would wait, because nothing accepts them. */
function unusedSockets({ sockets }: ServiceManager, stateOf: StateOf): readonly string[] {
  const isOff = stateOf('DISABLE_STATS').value === 'true';
  if (sockets.metrics === undefined || (stateOf('USE_PULLMETRICS').value === 'true' && !isOff)) return [];
  const reason = isOff ? 'DISABLE_STATS is true' : 'USE_PULLMETRICS is false';
  return [`the socket "metrics" of the service manager has no effect, because ${reason}`];
}
