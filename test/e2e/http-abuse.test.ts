import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { Agent, request } from 'node:http';
import { RuleFolder } from '../support/data/rule-folder';
import { freePorts } from '../support/processes/free-ports';
import { residentMemory } from '../support/processes/process-memory';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};
const REQUEST = '{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"regular"}]}]}';
const POST = 'POST /json HTTP/1.1\r\nHost: x\r\n';
const MIB = 2 ** 20;

let rules: RuleFolder;
let weir: WeirProcess;
let metricsPort: number;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
  [metricsPort] = await freePorts(1);
  weir = await WeirProcess.start({
    env: { ...rules.env, USE_PULLMETRICS: 'true', PULLMETRICS_ADDR: `127.0.0.1:${metricsPort}` },
  });
});
afterAll(async () => {
  await weir[Symbol.asyncDispose]();
  await rules[Symbol.asyncDispose]();
});

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

async function attacker(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** A caller on one connection that sends one request after the other, until it is stopped. */
function regularCaller() {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const outcomes = new Map<number | string, number>();
  let isStopped = false;
  function call(): Promise<number | string> {
    return new Promise((resolve) => {
      const sent = request(
        { port: weir.ports.http, host: '127.0.0.1', method: 'POST', path: '/json', agent },
        (response) => {
          response.resume().once('end', () => resolve(response.statusCode ?? 'no status'));
        },
      );
      sent.once('error', (error) => resolve(error.message)).end(REQUEST);
    });
  }
  async function run() {
    while (!isStopped) {
      const outcome = await call();
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
    agent.destroy();
  }
  const ended = run();
  return {
    outcomes,
    stop: () => {
      isStopped = true;
      return ended;
    },
  };
}

interface Attack {
  readonly kind: string;
  /** Resolves when everything has been sent. */
  readonly send: () => Promise<unknown>;
  /** MiB by which the resident memory may grow. Before there were limits, each attack needed several times as much. */
  readonly memory: number;
}

function times<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, make));
}

/** Writes as long as the connection accepts it. */
async function write(socket: Socket, text: string): Promise<void> {
  if (socket.destroyed || socket.write(text)) return;
  await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
}

const ATTACKS: Readonly<Record<string, Attack>> = {
  'bodies in chunks of one byte': {
    kind: 'data_dribble',
    memory: 200,
    send: () =>
      times(30, async () => {
        const socket = await attacker(weir.ports.http);
        await write(socket, `${POST}Transfer-Encoding: chunked\r\n\r\n`);
        const chunks = '1\r\n \r\n'.repeat(10_000);
        for (let part = 0; part < 20; part += 1) await write(socket, chunks);
      }),
  },
  '600 bodies of 1 MiB that are left unfinished': {
    kind: 'request_memory',
    memory: 400,
    send: async () => {
      const body = ' '.repeat(MIB - 1);
      for (let batch = 0; batch < 30; batch += 1) {
        await times(20, async () => {
          const socket = await attacker(weir.ports.http);
          socket.resume();
          await write(socket, `${POST}Content-Length: ${MIB}\r\n\r\n${body}`);
        });
      }
    },
  },
  // They are decided as they arrive, until the responses fill the buffers of the connection. On Node 20 and 22 that costs up to 60 MiB; on
  // Node 24, once, up to 190 MiB.
  'pipelined requests whose responses are not read': {
    kind: 'pipelining',
    memory: 300,
    send: () =>
      times(4, async () => {
        const socket = await attacker(weir.ports.http);
        const requests = `${POST}Content-Length: ${REQUEST.length}\r\n\r\n${REQUEST}`.repeat(100_000);
        // The connection is ended meanwhile.
        await write(socket, requests).catch(() => undefined);
      }),
  },
  'pipelined requests for metrics': {
    kind: 'pipelining',
    memory: 150,
    send: () =>
      times(20, async () =>
        write(await attacker(metricsPort), 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000)),
      ),
  },
  'pipelined requests for statistics': {
    kind: 'pipelining',
    memory: 150,
    send: () =>
      times(20, async () =>
        write(await attacker(weir.ports.debug), 'GET /stats HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000)),
      ),
  },
  '200 idle connections to the debug listener': {
    kind: 'connections',
    memory: 100,
    send: () => times(200, () => attacker(weir.ports.debug)),
  },
  '200 idle connections to the metrics listener': {
    kind: 'connections',
    memory: 100,
    send: () => times(200, () => attacker(metricsPort)),
  },
  'requests with two Host headers': {
    kind: 'malformed',
    memory: 100,
    send: () =>
      times(100, async () => write(await attacker(weir.ports.http), `${POST}Host: y\r\nContent-Length: 2\r\n\r\n{}`)),
  },
};

describe('an abusive HTTP client', () => {
  it.each(Object.entries(ATTACKS))(
    'with %s costs a bounded amount of memory, is counted, and takes no answer from a regular one',
    async (_title, { kind, send, memory }) => {
      const name = `ratelimit_server.http.${kind}`;
      const counted = (await weir.statistics()).get(name) ?? 0;
      const before = residentMemory(weir.pid!);
      let peak = before;
      const sampling = setInterval(() => {
        peak = Math.max(peak, residentMemory(weir.pid!));
      }, 20);
      const caller = regularCaller();
      try {
        await send();
        await weir.until(`${kind} to be counted`, async () => ((await weir.statistics()).get(name) ?? 0) > counted);
      } finally {
        clearInterval(sampling);
        await caller.stop();
      }
      expect(peak - before).toBeLessThan(memory);
      expect([...caller.outcomes.keys()]).toEqual([200]);
      for (const [port, path] of [
        [weir.ports.http, '/healthcheck'],
        [weir.ports.debug, '/healthcheck'],
        [metricsPort, '/metrics'],
      ]) {
        const response = await fetch(`http://127.0.0.1:${port}${path}`);
        await response.arrayBuffer();
        expect(response.status).toBe(200);
      }
    },
  );

  it('is reported by lines about conditions, not about each rejection', async () => {
    const statistics = await weir.statistics();
    for (const [kind, text] of [
      ['request_memory', 'unfinished bodies of HTTP requests use all of the memory for them'],
      ['connections', 'an HTTP listener has too many connections'],
    ] as const) {
      const lines = weir.output.split('\n').filter((line) => line.includes(text));
      const rejections = statistics.get(`ratelimit_server.http.${kind}`) ?? 0;
      expect(rejections).toBeGreaterThan(20);
      expect(lines.length).toBeGreaterThan(0);
      // More than one only if the machine was so busy that there was no rejection for five seconds.
      expect(lines.length).toBeLessThan(rejections / 4);
    }
  });
});

describe('six heap snapshots at once', () => {
  it('are written one at a time, and decisions are made again as soon as the first is written', async () => {
    const url = `http://127.0.0.1:${weir.ports.debug}/debug/pprof/heap?format=v8`;
    const statuses = await times(6, async () => {
      const response = await fetch(url);
      await response.arrayBuffer();
      return response.status;
    });
    // The others have waited while the first was written: too long for the time limit of a request if the machine is busy.
    expect(statuses).toContain(200);
    expect([200, 408, 429]).toEqual(expect.arrayContaining(statuses));
    expect(statuses.filter((status) => status === 200).length).toBeLessThan(3);
    expect((await weir.http('/json', { method: 'POST', body: REQUEST })).status).toBe(200);
    await weir.until('the next snapshot', async () => {
      const response = await fetch(url);
      await response.arrayBuffer();
      return response.status === 200;
    });
  });
});

describe('the debug listener', () => {
  const WARNING = 'the debug listener can be reached from other machines';

  it('causes a warning that names its setting if other machines reach it', async () => {
    await using exposed = await WeirProcess.start({ env: { ...rules.env, DEBUG_HOST: '0.0.0.0' } });
    expect(exposed.output).toMatch(new RegExp(`level=warning msg="${WARNING} \\(DEBUG_HOST=0\\.0\\.0\\.0\\)`));
  });

  it('causes no warning on a loopback address', () => {
    expect(weir.output).not.toContain(WARNING);
  });
});
