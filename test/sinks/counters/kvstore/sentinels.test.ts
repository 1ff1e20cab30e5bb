import { setTimeout as wait } from 'node:timers/promises';
import { type Server, parseServer } from '../../../../src/sinks/counters/server-address';
import { Sentinels } from '../../../../src/sinks/counters/kvstore/stores/sentinel/sentinels';
import { FakeSentinel, type SentinelView } from '../../../support/servers/fake-sentinel';
import { until } from '../../../support/waiting/until';

const OLD = { port: 1001 };
const CURRENT = { port: 1002 };

const fakes: FakeSentinel[] = [];
afterEach(() => Promise.all(fakes.splice(0).map((fake) => fake[Symbol.asyncDispose]())));

async function fakeSentinels(...views: readonly SentinelView[]): Promise<{ readonly sentinels: Sentinels }> {
  fakes.push(...(await Promise.all(views.map((view) => FakeSentinel.start(view)))));
  const rest = { masterName: 'counters', credentials: () => undefined, tls: undefined, timeout: 0 };
  return { sentinels: new Sentinels({ ...rest, sentinels: fakes.map(({ address }) => parseServer(address)) }) };
}

/** The port of the master that a query returns. */
async function portOf(master: Promise<Server>): Promise<number | undefined> {
  const server = await master;
  return server.kind === 'tcp' ? server.port : undefined;
}

function serverOf(index: number): Server {
  return parseServer(fakes[index]?.address ?? '');
}

describe('a query for the master', () => {
  it('that was waiting for a sentinel when another announced a master returns the announced one', async () => {
    const { sentinels } = await fakeSentinels({ master: OLD }, { master: CURRENT });
    const [first] = fakes as [FakeSentinel, FakeSentinel];
    let release: () => void = () => undefined;
    first.held = new Promise<void>((resolve) => (release = resolve));
    const waiting = sentinels.master();
    await until('the first sentinel is queried', () => first.queries === 1);
    sentinels.putFirst(serverOf(1));
    expect(await Promise.race([portOf(sentinels.master()), wait(1000, 'waits')])).toBe(CURRENT.port);
    release();
    expect(await portOf(waiting)).toBe(CURRENT.port);
    expect(await portOf(sentinels.master())).toBe(CURRENT.port);
  });

  it('is shared by concurrent calls', async () => {
    const { sentinels } = await fakeSentinels({ master: OLD });
    await Promise.all([sentinels.master(), sentinels.master()]);
    expect(fakes[0]?.queries).toBe(1);
  });

  it('begins with the next sentinel each time the named master is rejected, and comes back to the first', async () => {
    const view = { master: OLD, epoch: 1 };
    const { sentinels } = await fakeSentinels(view, view, view);
    for (let query = 0; query < 4; query += 1) {
      expect(await portOf(sentinels.master())).toBe(OLD.port);
      sentinels.reject(`127.0.0.1:${OLD.port}`);
      // A second connection that fails says nothing new.
      sentinels.reject(`127.0.0.1:${OLD.port}`);
    }
    expect(fakes.map(({ queries }) => queries)).toEqual([2, 1, 1]);
  });

  it('does not return to an older configuration when a connection to the new master fails once', async () => {
    const current = { master: CURRENT, epoch: 2 };
    const { sentinels } = await fakeSentinels({ master: OLD, epoch: 1 }, current, current);
    sentinels.putFirst(serverOf(1));
    expect(await portOf(sentinels.master())).toBe(CURRENT.port);
    sentinels.reject(`127.0.0.1:${CURRENT.port}`);
    expect(await portOf(sentinels.master())).toBe(CURRENT.port);
  });

  it.each(['answers', 'does not answer'])(
    'does not return to an older configuration while the new master, which was there, is away, when a third sentinel %s',
    async (third) => {
      const current = { master: CURRENT, epoch: 2 };
      const { sentinels } = await fakeSentinels({ master: OLD, epoch: 1 }, current, current);
      if (third === 'does not answer') await fakes.pop()?.[Symbol.asyncDispose]();
      sentinels.putFirst(serverOf(1));
      expect(await portOf(sentinels.master())).toBe(CURRENT.port);
      sentinels.prove(`127.0.0.1:${CURRENT.port}`);
      for (let attempt = 0; attempt < 5; attempt += 1) {
        sentinels.reject(`127.0.0.1:${CURRENT.port}`);
        expect(await portOf(sentinels.master())).toBe(CURRENT.port);
      }
      for (const fake of fakes) fake.view = { master: OLD, epoch: 3 };
      expect(await portOf(sentinels.master())).toBe(OLD.port);
    },
  );

  it('begins with a sentinel that answers, however often the master is rejected', async () => {
    const view = { master: OLD, epoch: 1 };
    const { sentinels } = await fakeSentinels(view, view, view);
    const [silent] = fakes as [FakeSentinel];
    silent.held = new Promise(() => undefined);
    expect(await portOf(sentinels.master())).toBe(OLD.port);
    for (let query = 0; query < 6; query += 1) {
      sentinels.reject(`127.0.0.1:${OLD.port}`);
      await sentinels.master();
    }
    expect(silent.queries).toBe(1);
  });

  it('goes to the other sentinels when the one whose messages were missed does not answer', async () => {
    const { sentinels } = await fakeSentinels({ master: OLD, epoch: 1 }, { master: CURRENT, epoch: 1 });
    const away = serverOf(0);
    await fakes.shift()?.[Symbol.asyncDispose]();
    expect(await portOf(sentinels.masterAfterGap(away))).toBe(CURRENT.port);
  });

  it('accepts sentinels that were set up again, whose versions begin at 0', async () => {
    const { sentinels } = await fakeSentinels({ master: OLD, epoch: 7 }, { master: OLD, epoch: 7 });
    expect(await portOf(sentinels.master())).toBe(OLD.port);
    for (const fake of fakes) fake.view = { master: CURRENT, epoch: 0 };
    expect(await portOf(sentinels.master())).toBe(CURRENT.port);
  });
});
