import { certificateName, grpcTarget } from '../values/addresses';
import { interval, pauseDuration } from '../values/duration';
import { grpcHeaders, pairs } from '../values/lists';
import { DEFAULT_MESSAGE_BYTES, messageSize, ratio } from '../values/numbers';
import { anyText, boolean, choice, filePath } from '../values/value-type';
import { is } from './condition';
import { group, setting } from './setting';

const FROM_FILES = is('CONFIG_TYPE', 'FILE');
const WITH_TLS = is('CONFIG_GRPC_XDS_SERVER_USE_TLS', 'true');

const ruleSettings = group({
  title: 'Rules',
  note: 'Rule files are *.yaml and *.yml below RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY.',
  settings: [
    setting('CONFIG_TYPE', choice({ FILE: [], GRPC_XDS_SOTW: [] }), 'FILE')`
      Source of the rules: rule files, or an xDS server.`,
    setting('FORCE_START_WITHOUT_INITIAL_CONFIG', boolean, false)`
      Opens the gRPC and HTTP listeners before rules are loaded.`,
    setting('HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED', boolean, false)`
      Healthy only while at least one domain is loaded.`,
    setting('MERGE_DOMAIN_CONFIG', boolean, false)`Allows several rule files for one domain.`,
    setting('RUNTIME_ROOT', filePath, '/srv/runtime_data/current', FROM_FILES)`
      Directory with the configuration, or a symbolic link to it.`,
    setting('RUNTIME_SUBDIRECTORY', filePath, '', FROM_FILES)`Directory below RUNTIME_ROOT.`,
    setting('RUNTIME_APPDIRECTORY', filePath, 'config', FROM_FILES)`
      Directory below that, with the rule files.`,
    setting('RUNTIME_IGNOREDOTFILES', boolean, false, FROM_FILES)`
      Skips files and directories whose names begin with a dot.`,
    setting('RUNTIME_WATCH_ROOT', boolean, true, FROM_FILES)`
      Reloads the rules when the link RUNTIME_ROOT is switched; false: when a rule file changes.`,
  ],
});

/** In milliseconds. Without a pause, a server that answers and then ends each stream would cause a busy loop. */
const SHORTEST_PAUSE = 100;

const xdsSettings = group({
  title: 'Rules from an xDS server',
  requires: [is('CONFIG_TYPE', 'GRPC_XDS_SOTW')],
  settings: [
    setting('CONFIG_GRPC_XDS_SERVER_URL', grpcTarget, 'localhost:18000')`Address of the xDS server.`,
    setting('CONFIG_GRPC_XDS_NODE_ID', anyText(), 'default')`Node id of weir.`,
    setting('CONFIG_GRPC_XDS_NODE_METADATA', pairs({ separator: '=', emptyValues: 'allowed' }), {})`
      Node metadata of weir.`,
    setting('CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS', grpcHeaders, {})`
      Headers to send to the server, for example authorization.`,
    setting('CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL', pauseDuration(SHORTEST_PAUSE), 3000)`
      Delay before reconnecting after a stream that worked, at least 100ms.`,
    setting('XDS_CLIENT_BACKOFF_INITIAL_INTERVAL', interval(SHORTEST_PAUSE), 10_000)`
      Delay after the first stream that failed.`,
    setting('XDS_CLIENT_BACKOFF_MAX_INTERVAL', interval(SHORTEST_PAUSE), 60_000)`
      Longest delay after failures.`,
    setting('XDS_CLIENT_BACKOFF_RANDOM_FACTOR', ratio({ min: 0, max: 1000 }), 0.5)`
      Each further failure multiplies the delay by 1 + this value; by the value itself if it is above 1.`,
    setting('XDS_CLIENT_BACKOFF_JITTER', boolean, true)`
      Chooses each delay at random between the initial delay and the computed one.`,
    setting('XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES', messageSize, DEFAULT_MESSAGE_BYTES)`
      Maximum size of a message from the server; 0: the default.`,
    setting('CONFIG_GRPC_XDS_SERVER_USE_TLS', boolean, false)`Connects to the server with TLS.`,
    setting('CONFIG_GRPC_XDS_SERVER_TLS_CACERT', filePath, undefined, WITH_TLS)`
      CA of the server, in addition to those of the system.`,
    setting('CONFIG_GRPC_XDS_SERVER_TLS_SAN', certificateName, undefined, WITH_TLS)`
      Name in the certificate of the server, instead of its host name.`,
    setting('CONFIG_GRPC_XDS_CLIENT_TLS_CERT', filePath, undefined, WITH_TLS)`Client certificate.`,
    setting('CONFIG_GRPC_XDS_CLIENT_TLS_KEY', filePath, undefined, WITH_TLS)`
      Private key of that certificate.`,
  ],
});

export const ruleGroups = [ruleSettings, xdsSettings] as const;
