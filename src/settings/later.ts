/**
 * What a later release brings. When a feature arrives, delete its line: the compiler then names every mark in the table that
 * has to go with it.
 */
export const later = {
  grpcTls: 'TLS of the gRPC listener',
  grpcConnections: 'Unix sockets and connection age of the gRPC listener',
  workers: 'worker processes',
  kvstore: 'the key-value store',
  plaincache: 'the memcache-type store',
  statisticsOutputs: 'the statistics outputs',
  tracing: 'tracing',
} as const;
