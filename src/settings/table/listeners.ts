import { certificateName, hostName, hostNames, instanceName, listenPath, peerAddresses } from '../values/addresses';
import { atLeast, duration, span } from '../values/duration';
import { operatorTokens, settingNames } from '../values/lists';
import { port, positive, workers } from '../values/numbers';
import { boolean, choice, filePath, logFormat, operatorToken } from '../values/value-type';
import { is, isNot, isNotSet, isSet } from './condition';
import { group, noDefault, setting } from './setting';

const HOUR = 3_600_000;
const NO_SOCKET = isNotSet('GRPC_UDS');

const listenerSettings = group({
  title: 'Listeners',
  note: '0.0.0.0 includes IPv6 where available; port 0 is a free port.',
  settings: [
    setting('HOST', hostName, '0.0.0.0')`
      Address of the HTTP listener: /json and health checks.`,
    setting('PORT', port, 8080)`Port of the HTTP listener.`,
    setting('GRPC_HOST', hostName, '0.0.0.0', NO_SOCKET)`Address of the gRPC listener.`,
    setting('GRPC_PORT', port, 8081, NO_SOCKET)`Port of the gRPC listener.`,
    setting('GRPC_UDS', listenPath, undefined)`
      Unix socket for gRPC, in place of GRPC_HOST and GRPC_PORT.`,
    setting('GRPC_MAX_CONNECTION_AGE', atLeast(span, 1000), 24 * HOUR)`
      Age, ±10 %, at which a client has to reconnect (GOAWAY); 0: never.`,
    setting('GRPC_MAX_CONNECTION_AGE_GRACE', span, HOUR, isNot('GRPC_MAX_CONNECTION_AGE', '0'))`
      Time from then until the connection is closed; calls in flight and a Watch end with UNAVAILABLE. 0: never.`,
    setting('GRPC_MAX_CONNECTIONS', positive, 16_384)`
      Open gRPC connections; further ones are closed. Each needs a file descriptor.`,
    setting('GRPC_MAX_STREAMING_CALLS_PER_CONNECTION', positive, 100)`
      Open streaming calls (health Watch, reflection) of a connection; further ones fail with RESOURCE_EXHAUSTED.`,
    setting('GRPC_MAX_STREAMING_CALLS', positive, 10_000)`
      Open streaming calls of all connections of a process.`,
    setting('DEBUG_HOST', hostName, '0.0.0.0')`
      Address of the debug listener: /rlconfig, /stats, /api and profiles.`,
    setting('DEBUG_PORT', port, 6070)`Port of the debug listener.`,
    setting('DEBUG_ALLOWED_HOSTS', hostNames, [])`
      Names by which the debug listener may be called, in addition to IP addresses, localhost, names without a dot
      and the name of the machine.`,
    setting('DEBUG_TLS_CERT', filePath, undefined)`
      Certificate chain of the debug listener, which then has TLS.`,
    setting('DEBUG_TLS_KEY', filePath, undefined)`
      Private key of that certificate.`,
    setting('CONSOLE', boolean, true)`Serves the console at /console/ of the debug listener.`,
    setting('OPERATOR_TOKEN', operatorToken, undefined)`
      Bearer token for changes by the operators' API, reads that show callers' values, and profiles. Without a
      token, changes are off.`,
    setting('OPERATOR_TOKENS', operatorTokens, undefined)`
      Further tokens, each with the name of its holder and a role: view (reads), operate (all), peer (another
      instance).`,
    setting('OPERATOR_PEERS', peerAddresses, [])`
      Debug listeners of the instances to show together: each by its address, or all by a name in DNS; at most 100.`,
    setting('OPERATOR_PEERS_TOKEN', operatorToken, noDefault('that of OPERATOR_TOKEN'))`
      Token to send to the instances of OPERATOR_PEERS.`,
    setting('INSTANCE_NAME', instanceName, noDefault('name of the machine'))`
      Name of this instance in the console and the operators' API.`,
    setting('OPERATOR_EXPECTED_DIFFERENCES', settingNames, [])`
      Settings that may differ between instances, in addition to addresses, names, ports and paths.`,
  ],
});

const grpcTlsSettings = group({
  title: 'TLS of the gRPC listener',
  requires: [is('GRPC_SERVER_USE_TLS', 'true')],
  settings: [
    setting('GRPC_SERVER_USE_TLS', boolean, false)`Serves gRPC over TLS.`,
    setting('GRPC_SERVER_TLS_CERT', filePath, undefined)`
      Certificate chain of the server.`,
    setting('GRPC_SERVER_TLS_KEY', filePath, undefined)`
      Private key of that certificate.`,
    setting('GRPC_CLIENT_TLS_CACERT', filePath, undefined)`
      CA of client certificates; if set, every client must present one.`,
    setting('GRPC_CLIENT_TLS_SAN', certificateName, undefined, isSet('GRPC_CLIENT_TLS_CACERT'))`
      DNS name that the client certificate must contain.`,
  ],
});

/** trace and panic, which only the Go service has, map to the nearest level. */
const logLevel = choice({ fatal: ['panic'], error: [], warning: ['warn'], info: [], debug: ['trace'] });

const processSettings = group({
  title: 'Process and logs',
  note: 'Logs are written to standard error.',
  settings: [
    setting('LOG_LEVEL', logLevel, 'warning')`
      Minimum level of the log; \`warning\` includes lines about start, reloads, changes by operators, the end of
      what was warned about, and stop.`,
    setting('LOG_FORMAT', logFormat, 'text')`key="value" fields, or one JSON object per line.`,
    setting('WORKERS', workers, 1)`Processes that decide behind the same ports; auto: one per CPU core.`,
    setting('EVENT_LOOP_TIMEOUT', atLeast(span, 1000), 30_000)`
      Time without a turn of its event loop after which a process kills itself; 0: never.`,
    setting('SHUTDOWN_DELAY', duration('0 to 1h'), 5_000)`
      Time from SIGTERM, SIGHUP or SIGPWR, when health turns unhealthy, to the drain; calls are served until then.`,
  ],
});

export const listenerGroups = [listenerSettings, grpcTlsSettings, processSettings] as const;
