import { group, setting } from './setting';
import { boolean } from '../values/choices';
import { duration } from '../values/duration';
import { grpcHeaders, pairs } from '../values/lists';
import { grpcTarget } from '../values/addresses';
import { DEFAULT_MESSAGE_BYTES, messageSize, ratio } from '../values/numbers';
import { filePath, text } from '../values/text';

export const xdsSettings = group({
  title: 'Rules from an xDS server',
  note: 'In force with CONFIG_TYPE=GRPC_XDS_SOTW.',
  settings: [
    setting({
      field: 'configGrpcXdsServerUrl',
      name: 'CONFIG_GRPC_XDS_SERVER_URL',
      type: grpcTarget,
      default: 'localhost:18000',
      help: 'Where the server is.',
    }),
    setting({
      field: 'configGrpcXdsNodeId',
      name: 'CONFIG_GRPC_XDS_NODE_ID',
      type: text(),
      default: 'default',
      help: 'Id of this node, as the server knows it.',
    }),
    setting({
      field: 'configGrpcXdsNodeMetadata',
      name: 'CONFIG_GRPC_XDS_NODE_METADATA',
      type: pairs({ separator: '=', emptyValues: 'allowed' }),
      default: {},
      help: 'Metadata of this node.',
    }),
    setting({
      field: 'configGrpcXdsClientAdditionalHeaders',
      name: 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS',
      type: grpcHeaders,
      default: {},
      // Made for authorization, says document 1.
      secret: 'value',
      help: 'Headers of the calls to the server, for example authorization.',
    }),
    setting({
      field: 'configGrpcXdsServerConnectRetryInterval',
      name: 'CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL',
      type: duration('0 or more'),
      default: 3000,
      help: 'Wait before connecting again after a stream that worked.',
    }),
    setting({
      field: 'xdsClientBackoffInitialInterval',
      name: 'XDS_CLIENT_BACKOFF_INITIAL_INTERVAL',
      type: duration('above 0'),
      default: 10_000,
      help: 'First wait after a stream that failed.',
    }),
    setting({
      field: 'xdsClientBackoffMaxInterval',
      name: 'XDS_CLIENT_BACKOFF_MAX_INTERVAL',
      type: duration('above 0'),
      default: 60_000,
      help: 'Longest wait, however many streams in a row failed.',
    }),
    setting({
      field: 'xdsClientBackoffRandomFactor',
      name: 'XDS_CLIENT_BACKOFF_RANDOM_FACTOR',
      type: ratio({ min: 0 }),
      default: 0.5,
      help: 'The wait grows by 1 + this with each failure in a row; by this itself where it is above 1.',
    }),
    setting({
      field: 'xdsClientBackoffJitter',
      name: 'XDS_CLIENT_BACKOFF_JITTER',
      type: boolean,
      default: true,
      help: 'Draws each wait at random, between the first one and the one worked out.',
    }),
    setting({
      field: 'xdsClientMaxMsgSizeInBytes',
      name: 'XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES',
      type: messageSize,
      default: DEFAULT_MESSAGE_BYTES,
      help: 'Largest message taken from the server; 0: the default.',
    }),
    setting({
      field: 'configGrpcXdsServerUseTls',
      name: 'CONFIG_GRPC_XDS_SERVER_USE_TLS',
      type: boolean,
      default: false,
      help: 'Speaks TLS with the server.',
    }),
    setting({
      field: 'configGrpcXdsServerTlsCacert',
      name: 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT',
      type: filePath,
      default: undefined,
      help: "CA of the server, PEM; trusted beside the system's.",
    }),
    setting({
      field: 'configGrpcXdsServerTlsSan',
      name: 'CONFIG_GRPC_XDS_SERVER_TLS_SAN',
      type: text('DNS name'),
      default: undefined,
      help: "Name that the server's certificate must carry, in place of its host's.",
    }),
    setting({
      field: 'configGrpcXdsClientTlsCert',
      name: 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT',
      type: filePath,
      default: undefined,
      help: 'Certificate shown to the server, PEM.',
    }),
    setting({
      field: 'configGrpcXdsClientTlsKey',
      name: 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY',
      type: filePath,
      default: undefined,
      help: 'Private key of that certificate, PEM.',
    }),
  ],
});
