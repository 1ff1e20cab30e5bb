import type { HostPort } from '../text/host-port';
import { prose } from '../text/prose';
import { type Field, INSTANCES, type InstanceFields, type Settings, type SettingsView } from './settings';
import { isSocketPath, isStoreAddress } from './values/addresses';
import { splitList } from './values/lists';

/**
 * A check of settings against each other: what is wrong and how to correct it, in one sentence; undefined when nothing
 * is wrong. A check that reads a setting which is invalid by itself ends there.
 */
export type Check = (view: SettingsView) => string | undefined;

/** A check that applies only while each of the settings has an effect, by its conditions in the table. */
function whileEffective(fields: readonly Field[], find: Check): Check {
  return (view) => (fields.every(view.hasEffect) ? find(view) : undefined);
}

/**
 * As {@link whileEffective}, for a problem whose message is a template that has fields, which are named as the user has
 * set them, and values. Its line breaks count as blanks.
 */
function check(fields: readonly Field[], isWrong: (settings: Settings) => boolean) {
  return (
    texts: TemplateStringsArray,
    ...parts: readonly (Field | ((settings: Settings) => string | number))[]
  ): Check =>
    whileEffective(fields, ({ settings, nameOf }) => {
      if (!isWrong(settings)) return undefined;
      const named = parts.map((part) => (typeof part === 'function' ? part(settings) : nameOf(part)));
      return prose(texts, named);
    });
}

function pairsOf<Item>(items: readonly Item[]): readonly (readonly [Item, Item])[] {
  return items.flatMap((one, index) => items.slice(index + 1).map((other) => [one, other] as const));
}

type File = { [F in Field]: string | undefined extends Settings[F] ? F : never }[Field];

function requireFile(file: File): Check {
  return check([file], ({ [file]: path }) => path === undefined)`
    ${'grpcServerUseTls'} is true, but ${file} is not set; set it to the path of a PEM file.`;
}

/**
 * A client presents a certificate only if it has both the certificate and its key: one alone would be silently ignored.
 */
function requirePair(certificate: File, key: File, isUsed: (view: SettingsView) => boolean = () => true): Check {
  return whileEffective([certificate, key], (view) => {
    const { settings, nameOf } = view;
    if ((settings[certificate] === undefined) === (settings[key] === undefined) || !isUsed(view)) return undefined;
    const [present, absent] = settings[key] === undefined ? [certificate, key] : [key, certificate];
    return `${nameOf(present)} is set, but ${nameOf(absent)} is not; a certificate and its key must be set together.`;
  });
}

function requestsTls(url = ''): boolean {
  return /rediss:\/\//i.test(url);
}

/** TLS that only the second store requests counts while that store is used. */
function usesStoreTls({ settings, hasEffect }: SettingsView): boolean {
  const { kvstoreTls, kvstoreUrl, kvstorePersecondTls, kvstorePersecondUrl } = settings;
  if (kvstoreTls || requestsTls(kvstoreUrl)) return true;
  return hasEffect('kvstorePersecondTls') && (kvstorePersecondTls || requestsTls(kvstorePersecondUrl));
}

const tlsChecks: readonly Check[] = [
  requireFile('grpcServerTlsCert'),
  requireFile('grpcServerTlsKey'),
  check([], ({ grpcClientTlsCacert: ca, grpcServerUseTls: isTls }) => ca !== undefined && !isTls)`
    ${'grpcClientTlsCacert'} is set, but TLS is off; set ${'grpcServerUseTls'}=true to verify client certificates, or
    remove ${'grpcClientTlsCacert'}.`,
  check([], ({ grpcClientTlsSan: name, grpcClientTlsCacert: ca }) => name !== undefined && ca === undefined)`
    ${'grpcClientTlsSan'} is set, but clients present no certificate unless ${'grpcClientTlsCacert'} is set; set both or
    neither.`,
  requirePair('configGrpcXdsClientTlsCert', 'configGrpcXdsClientTlsKey'),
  requirePair('debugTlsCert', 'debugTlsKey'),
  requirePair('kvstoreTlsClientCert', 'kvstoreTlsClientKey', usesStoreTls),
  requirePair('plaincacheTlsClientCert', 'plaincacheTlsClientKey'),
];

const ALLOWED_ADDRESSES = {
  single: 'one host:port, one socket path, or one redis:// or rediss:// URL',
  sentinel: 'the name of the master and the host:port or URL of at least one sentinel, separated by commas',
  cluster: 'the host:port or URL of at least one node, separated by commas',
} as const;

/** What is wrong with the address of an instance. The address may contain a password and is not quoted. */
function addressProblem(type: Settings['kvstoreType'], url: string): string | undefined {
  if (type === 'single') return isStoreAddress(url) ? undefined : 'it is not the address of one server';
  const items = splitList(url);
  const empty = items.indexOf('');
  if (empty >= 0) return `item ${empty + 1} is empty`;
  if (type === 'sentinel' && items.length < 2) return 'it contains no sentinel';
  const servers = type === 'sentinel' ? items.slice(1) : items;
  const invalid = servers.find((server) => isSocketPath(server) || !isStoreAddress(server));
  return invalid === undefined ? undefined : `item ${items.lastIndexOf(invalid) + 1} is not a host:port or URL`;
}

/**
 * Checks the address of an instance of the key-value store; `requiredBy` is the setting that makes the service use it.
 */
function addressCheck(instance: InstanceFields, requiredBy: 'backendType' | 'kvstorePersecond'): Check {
  return whileEffective([instance.url], ({ settings, nameOf }) => {
    const [url, type, name] = [settings[instance.url], settings[instance.type], nameOf(instance.url)];
    if (url === undefined) {
      const reason = `${nameOf(requiredBy)} is ${settings[requiredBy]}`;
      return `${reason}, but ${name} is not set; set it to the address of Redis or Valkey.`;
    }
    const problem = addressProblem(type, url);
    if (problem === undefined) return undefined;
    return `${name} is invalid with ${nameOf(instance.type)}=${type}: ${problem}; allowed: ${ALLOWED_ADDRESSES[type]}.`;
  });
}

/** Calls would never be answered by policy before the store is given up. */
function timeoutCheck(timeout: InstanceFields['timeout']): Check {
  function isLonger({ [timeout]: most, storeDecisionTimeout = 0 }: Settings): boolean {
    return most !== 0 && storeDecisionTimeout > most;
  }
  return check(['storeDecisionTimeout', timeout], isLonger)`
    ${'storeDecisionTimeout'} is longer than ${timeout}; set it to at most ${({ [timeout]: most }) => most}ms.`;
}

/** A window in which calls wait longer than for the store would end with no call answered. */
function windowCheck(
  window: InstanceFields['pipelineWindow'],
  limit: InstanceFields['timeout'] | 'storeDecisionTimeout',
): Check {
  return check([window, limit], ({ [limit]: most = 0, [window]: length }) => most !== 0 && length >= most)`
    ${window} is not shorter than ${limit}, so that no call could be answered; 150us to 5ms are usual.`;
}

/** The bytes of the rest of the shortest key of a counter: a domain, an entry and the start of the window. */
const SHORTEST_KEY = 15;
const LONGEST_PREFIX = 250 - SHORTEST_KEY;

const storeChecks: readonly Check[] = [
  check(['plaincacheHostPort'], ({ cacheKeyPrefix: prefix }) => /\s/.test(prefix))`
    ${'cacheKeyPrefix'} contains white space, which keys of memcached may not have; remove it.`,
  check(['plaincacheHostPort'], ({ cacheKeyPrefix: prefix }) => Buffer.byteLength(prefix) > LONGEST_PREFIX)`
    ${'cacheKeyPrefix'} has more than ${() => LONGEST_PREFIX} bytes, so that no key has the at most 250 bytes of
    memcached; shorten it.`,
  check(['storeFailureLocalShare'], ({ storeFailureLocalShare: share, operatorPeers: peers }) => {
    return share === 'auto' && peers.length === 0;
  })`${'storeFailureLocalShare'} is auto, but ${'operatorPeers'}, which names the instances, is not set.`,
  ...Object.values(INSTANCES).flatMap(({ pipelineWindow, timeout }) => [
    windowCheck(pipelineWindow, timeout),
    windowCheck(pipelineWindow, 'storeDecisionTimeout'),
    timeoutCheck(timeout),
  ]),
  addressCheck(INSTANCES.main, 'backendType'),
  addressCheck(INSTANCES.perSecond, 'kvstorePersecond'),
  whileEffective(['plaincacheHostPort'], ({ settings, nameOf }) => {
    const [list, record] = [nameOf('plaincacheHostPort'), nameOf('plaincacheSrv')];
    const hasRecord = settings.plaincacheSrv !== undefined;
    if (hasRecord !== settings.plaincacheHostPort.length > 0) return undefined;
    if (hasRecord) return `${list} and ${record} are both set; remove one of them.`;
    const reason = `${nameOf('backendType')} is plaincache, but neither ${list} nor ${record} is set`;
    return `${reason}; set one of them to the memcached servers.`;
  }),
];

/** The setting of the port of each listener, and its address. */
const listeners: readonly (readonly [Field, (settings: Settings) => HostPort])[] = [
  ['port', ({ host, port }) => ({ host, port })],
  ['grpcPort', ({ grpcHost: host, grpcPort: port }) => ({ host, port })],
  ['debugPort', ({ debugHost: host, debugPort: port }) => ({ host, port })],
  ['pullmetricsAddr', ({ pullmetricsAddr }) => pullmetricsAddr],
];

function isEveryAddress(host: string) {
  return host === '0.0.0.0' || host === '::';
}

function collide(one: HostPort, other: HostPort): boolean {
  const sameHost = one.host === other.host || isEveryAddress(one.host) || isEveryAddress(other.host);
  return one.port !== 0 && one.port === other.port && sameHost;
}

/** Two listeners cannot share a port. (In the Go service the kernel would distribute the connections between them.) */
const listenerChecks = pairsOf(listeners).map(
  ([[one, addressOfOne], [other, addressOfOther]]) =>
    check([one, other], (settings) => collide(addressOfOne(settings), addressOfOther(settings)))`
    ${one} and ${other} both use port ${(settings) => addressOfOne(settings).port}; give each listener its own port.`,
);

/**
 * Labels that weir's own metrics have, and those of the format: an extra one of that name would be lost, or make the
 * page invalid.
 */
const OWN_LABELS = new Set([
  ...['domain', 'key1', 'key2', 'key3', 'window', 'err_type', 'grpc_method', 'worker', 'descriptor', 'le', 'quantile'],
]);

const HEADERS = ['limitLimitHeader', 'limitRemainingHeader', 'limitResetHeader'] as const;

const headerChecks = pairsOf(HEADERS).map(
  ([one, other]) =>
    check([one, other], (settings) => settings[one].toLowerCase() === settings[other].toLowerCase())`
    ${one} and ${other} are the same header, ${(settings) => settings[one]}; give each its own name.`,
);

/** Whether statistics go to standard output, because no output is enabled. */
export function printsStatistics({ usePushstats, useTaggedstats, usePullmetrics, useOtlpMetrics }: Settings): boolean {
  return !usePushstats && !useTaggedstats && !usePullmetrics && !useOtlpMetrics;
}

const statisticsChecks: readonly Check[] = [
  whileEffective(['extraTags'], ({ settings: { usePullmetrics, useOtlpMetrics, extraTags }, nameOf }) => {
    if (!usePullmetrics && !useOtlpMetrics) return undefined;
    const labels = new Map<string, string>();
    for (const tag of Object.keys(extraTags)) {
      const label = tag.replaceAll(/\W/g, '_');
      const other = labels.get(label);
      if (OWN_LABELS.has(label) || label.startsWith('__')) {
        return (
          `${nameOf('extraTags')} contains the tag ${tag}, which the metrics of Prometheus and OTLP have a label for ` +
          'already; rename the tag.'
        );
      }
      if (other !== undefined) {
        return (
          `${nameOf('extraTags')} contains the tags ${other} and ${tag}, which are one label of Prometheus and OTLP; ` +
          'rename one of them.'
        );
      }
      labels.set(label, tag);
    }
    return undefined;
  }),
  check(['pushstatsHost'], ({ pushstatsHost, usePushstats, useTaggedstats }) => {
    return usePushstats && useTaggedstats && 'socketPath' in pushstatsHost;
  })`
    ${'pushstatsHost'} is a socket, whose daemon would receive every statistic twice, without and with tags; enable only
    one of ${'usePushstats'} and ${'useTaggedstats'}.`,
  check(['decisionLogOutput', 'usePushstats'], (settings) => {
    return printsStatistics(settings) && settings.decisionLogOutput === 'stdout';
  })`
    ${'decisionLog'}=${({ decisionLog }) => decisionLog} would write to standard output, as the statistics do when
    ${'usePushstats'} is false and no other output is on; set ${'decisionLogOutput'} to stderr or to a file, or enable
    another output of the statistics, or set ${'disableStats'}=true.`,
];

const responseHeaderCheck = check([], ({ limitResponseHeaders: headers, limitResponseHeadersEnabled: areEnabled }) => {
  return headers !== undefined && areEnabled !== (headers !== 'off');
})`
  ${'limitResponseHeaders'}=${({ limitResponseHeaders: headers }) => headers!} contradicts
  ${'limitResponseHeadersEnabled'}=${(settings) => String(settings.limitResponseHeadersEnabled)}; remove one of them.`;

export const checks: readonly Check[] = [
  ...tlsChecks,
  ...storeChecks,
  ...listenerChecks,
  responseHeaderCheck,
  ...headerChecks,
  ...statisticsChecks,
];
