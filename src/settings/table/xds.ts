import { is } from './condition';
import { group, setting } from './setting';
import { boolean } from '../values/choices';
import { pauseDuration, timerDuration } from '../values/duration';
import { grpcHeaders, pairs } from '../values/lists';
import { grpcTarget } from '../values/addresses';
import { DEFAULT_MESSAGE_BYTES, messageSize, ratio } from '../values/numbers';
import { filePath, text } from '../values/text';

/** In milliseconds. Without a pause, a server that answers and then ends each stream would cause a busy loop. */
const SHORTEST_PAUSE = 100;

export const xdsSettings = group({
  title: 'Rules from an xDS server',
  requires: [is('CONFIG_TYPE', 'GRPC_XDS_SOTW')],
  settings: [
    setting({
      field: 'configGrpcXdsServerUrl',
      name: 'CONFIG_GRPC_XDS_SERVER_URL',
      type: grpcTarget,
      default: 'localhost:18000',
      help: 'Address of the xDS server.',
    }),
    setting({
      field: 'configGrpcXdsNodeId',
      name: 'CONFIG_GRPC_XDS_NODE_ID',
      type: text(),
      default: 'default',
      help: 'Node id to send to the server.',
    }),
    setting({
      field: 'configGrpcXdsNodeMetadata',
      name: 'CONFIG_GRPC_XDS_NODE_METADATA',
      type: pairs({ separator: '=', emptyValues: 'allowed' }),
      default: {},
      help: 'Node metadata to send to the server.',
    }),
    setting({
      field: 'configGrpcXdsClientAdditionalHeaders',
      name: 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS',
      type: grpcHeaders,
      default: {},
      // Intended for authorization headers.
      secret: 'value',
      help: 'Headers to send to the server, for example authorization.',
    }),
    setting({
      field: 'configGrpcXdsServerConnectRetryInterval',
      name: 'CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL',
      type: pauseDuration(SHORTEST_PAUSE),
      default: 3000,
      help: 'Delay before reconnecting after a stream that worked; at least 100ms.',
    }),
    setting({
      field: 'xdsClientBackoffInitialInterval',
      name: 'XDS_CLIENT_BACKOFF_INITIAL_INTERVAL',
      type: timerDuration('above 0'),
      default: 10_000,
      help: 'Delay before reconnecting after the first stream that failed.',
    }),
    setting({
      field: 'xdsClientBackoffMaxInterval',
      name: 'XDS_CLIENT_BACKOFF_MAX_INTERVAL',
      type: timerDuration('above 0'),
      default: 60_000,
      help: 'Longest delay, regardless of the number of consecutive failures.',
    }),
    setting({
      field: 'xdsClientBackoffRandomFactor',
      name: 'XDS_CLIENT_BACKOFF_RANDOM_FACTOR',
      type: ratio({ min: 0 }),
      default: 0.5,
      help: 'The delay is multiplied by 1 + this value after each consecutive failure; by the value itself if it is above 1.',
    }),
    setting({
      field: 'xdsClientBackoffJitter',
      name: 'XDS_CLIENT_BACKOFF_JITTER',
      type: boolean,
      default: true,
      help: 'Chooses each delay at random between the initial delay and the computed one.',
    }),
    setting({
      field: 'xdsClientMaxMsgSizeInBytes',
      name: 'XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES',
      type: messageSize,
      default: DEFAULT_MESSAGE_BYTES,
      help: 'Maximum size of a message from the server; 0: the default.',
    }),
    setting({
      field: 'configGrpcXdsServerUseTls',
      name: 'CONFIG_GRPC_XDS_SERVER_USE_TLS',
      type: boolean,
      default: false,
      help: 'Connects to the server with TLS.',
    }),
    setting({
      field: 'configGrpcXdsServerTlsCacert',
      name: 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT',
      type: filePath,
      default: undefined,
      requires: [is('CONFIG_GRPC_XDS_SERVER_USE_TLS', 'true')],
      help: 'PEM file with the CA of the server, trusted in addition to the CAs of the system.',
    }),
    setting({
      field: 'configGrpcXdsServerTlsSan',
      name: 'CONFIG_GRPC_XDS_SERVER_TLS_SAN',
      type: text('DNS name'),
      default: undefined,
      requires: [is('CONFIG_GRPC_XDS_SERVER_USE_TLS', 'true')],
      help: 'Name that the certificate of the server must contain, instead of its host name.',
    }),
    setting({
      field: 'configGrpcXdsClientTlsCert',
      name: 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT',
      type: filePath,
      default: undefined,
      requires: [is('CONFIG_GRPC_XDS_SERVER_USE_TLS', 'true')],
      help: 'PEM file with the client certificate.',
    }),
    setting({
      field: 'configGrpcXdsClientTlsKey',
      name: 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY',
      type: filePath,
      default: undefined,
      requires: [is('CONFIG_GRPC_XDS_SERVER_USE_TLS', 'true')],
      help: 'PEM file with the private key of that certificate.',
    }),
  ],
});
