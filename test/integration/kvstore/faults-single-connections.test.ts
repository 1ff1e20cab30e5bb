import { until } from '../../support/waiting/until';
import { faultTests } from './fault-table';
import { expectLinePerOutage, playSingleFault } from './play-single-fault';

describe('a single server under load, with faults of the connection', () => {
  faultTests('Single server: connections', {
    'the server crashes': (row) =>
      playSingleFault(row, {
        begin: ({ server }) => server.crash(),
        end: ({ server }) => server.run(),
        losesData: true,
        then: expectLinePerOutage,
      }),

    'the server hangs': (row) =>
      playSingleFault(row, {
        begin: async ({ server, load }) => {
          server.signal('SIGSTOP');
          await until(
            'calls time out and then fail immediately',
            () => load.count('store_timeout') > 0 && load.count('store_failed') > 0,
          );
        },
        end: ({ server }) => server.signal('SIGCONT'),
        then: expectLinePerOutage,
      }),

    'the connections are closed': (row) => playSingleFault(row, { begin: ({ proxy }) => proxy.cut() }),

    'the connections are reset': (row) => playSingleFault(row, { begin: ({ proxy }) => proxy.reset() }),

    'a connection is cut in the middle of a reply': (row) =>
      playSingleFault(row, { begin: ({ proxy }) => proxy.cutAfterReplyBytes(7), poolSize: 1 }),

    'replies are lost': (row) =>
      playSingleFault(row, {
        begin: async ({ proxy, load }) => {
          proxy.fault = 'lost replies';
          await until(
            'calls time out and then fail immediately',
            () => load.count('store_timeout') > 0 && load.count('store_failed') > 0,
          );
        },
        end: ({ proxy }) => (proxy.fault = 'none'),
        then: expectLinePerOutage,
      }),

    'no bytes get through': (row) =>
      playSingleFault(row, {
        begin: async ({ proxy, load }) => {
          proxy.fault = 'black hole';
          await until(
            'calls time out and then fail immediately',
            () => load.count('store_timeout') > 0 && load.count('store_failed') > 0,
          );
        },
        end: ({ proxy }) => (proxy.fault = 'none'),
        then: expectLinePerOutage,
      }),

    'the server sends replies without requests': (row) =>
      playSingleFault(row, {
        begin: ({ proxy }) => proxy.sendToClients('+HELLO\r\n:1\r\nHTTP/1.1 400 Bad Request\r\n'),
      }),
  });
});
