import { firstValueFrom, switchMap } from 'rxjs';
import { turnScheduler } from '../../../src/main/turn-scheduler';
import { type Connection, connect } from '../../../src/sinks/counters/kvstore/connection';
import { count } from '../../../src/sinks/counters/kvstore/count';
import { TtlCache } from '../../../src/sinks/counters/kvstore/ttl-cache';
import { type Reply, CommandServer } from '../../support/servers/command-server';
import { until } from '../../support/waiting/until';
import { operation } from '../counters/scenarios';

const KNOWN = ['a', 'b', 'c'].map((key) => operation(key, 2));

/** Options with which all keys are known. */
function options() {
  const known = new TtlCache();
  known.forgetOld();
  known.add(KNOWN);
  return { jitter: 0, isAsking: false, known, knownStates: new TtlCache(true) };
}

/** Passes a connection to a server on to a test, and closes it. Fails when the connection is lost, with the reason. */
async function onConnection<T>({ port }: CommandServer, use: (connection: Connection) => Promise<T>): Promise<T> {
  const server = { kind: 'tcp', host: '127.0.0.1', port, family: 0 } as const;
  const more = { credentials: undefined, db: 0, tls: undefined, mustBeMaster: false, counts: false, timeout: 0 };
  const all = { server, scheduler: turnScheduler, ...more };
  return firstValueFrom(connect(all).pipe(switchMap((connection) => use(connection))));
}

describe('additions to known keys in one write', () => {
  it('are sent by the script while a single command has no reply, which would be taken for one of theirs', async () => {
    const received: string[] = [];
    let release: (reply: Reply) => void;
    const held = new Promise<Reply>((resolve) => (release = resolve));
    await using server = await CommandServer.start((name) => {
      received.push(name);
      if (name === 'incrby') return 5;
      if (name === 'evalsha') return [7, 8, 9];
      return name === 'get' ? held : 'PONG';
    });
    await onConnection(server, async (connection) => {
      const late = connection.send('GET', 'late');
      const counted = count(connection, [KNOWN], options());
      await until('both have arrived', () => received.includes('evalsha'));
      release('late');
      expect([await late, await counted]).toEqual(['late', [[7, 8, 9]]]);
      expect(await count(connection, [KNOWN], options())).toEqual([[5, 5, 5]]);
      expect(received.slice(-3)).toEqual(['incrby', 'incrby', 'incrby']);
    });
  });

  it('fail as a whole when the connection is lost between their replies', async () => {
    let commands = 0;
    await using server = await CommandServer.start((name, _, client) => {
      if (name !== 'incrby') return 'PONG';
      commands += 1;
      if (commands === 2) client.destroySoon();
      return 5;
    });
    const counted = onConnection(server, (connection) => count(connection, [KNOWN], options()));
    await expect(counted).rejects.toThrow(/closed/);
  });

  it('end the connection when a reply is neither a number nor an error', async () => {
    await using server = await CommandServer.start((name, [key]) => (name === 'incrby' && key !== 'b' ? 5 : 'PONG'));
    const counted = onConnection(server, (connection) => count(connection, [KNOWN], options()));
    await expect(counted).rejects.toThrow('the reply to INCRBY is neither a number nor an error');
  });
});
