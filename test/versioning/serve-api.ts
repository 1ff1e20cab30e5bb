import { once } from 'node:events';
import { type IncomingHttpHeaders, type Server, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Router } from '@koa/router';
import Koa, { type Context } from 'koa';
import { type Api, type ApiOptions, type ControllerClass, api } from '../../packages/versioning/src';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A Koa application that is listening. */
export class ServedApp implements AsyncDisposable {
  readonly #server: Server;

  private constructor(
    server: Server,
    readonly router: Router,
  ) {
    this.#server = server;
  }

  /** Serves the routes of a router, by default in an application with nothing else. */
  static async start(router: Router, app = appOf(router)): Promise<ServedApp> {
    // Headers may be longer than usual, for the tests of long ones.
    const server = createServer({ maxHeaderSize: 4_000_000 }, app.callback()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new ServedApp(server, router);
  }

  /** @param accept undefined: the request has no header Accept */
  get(path: string, accept?: string): Promise<Answer> {
    return this.send('GET', path, accept === undefined ? {} : { Accept: accept });
  }

  send(method: string, path: string, headers: Readonly<Record<string, string | string[]>> = {}): Promise<Answer> {
    const { port } = this.#server.address() as AddressInfo;
    return new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.once('end', () => resolve({ status: response.statusCode!, headers: response.headers, text }));
      });
      sent.once('error', reject);
      sent.end();
    });
  }

  /**
   * Sends requests and compares their answers. A request is `GET /foo`, with ` 2` for version 2 of the vendor `acme`,
   * or with an Accept header. An answer is the text, or else the status and the header Allow, if there is one.
   */
  async expectAnswers(expected: Readonly<Record<string, string>>): Promise<void> {
    const answers: Record<string, string> = {};
    for (const line of Object.keys(expected)) {
      const [method, path, ...rest] = line.split(' ') as [string, string, ...string[]];
      const accept = /^\d+$/.test(rest.join(' ')) ? acme(Number(rest[0])) : rest.join(' ');
      const { status, text, headers } = await this.send(method, path, rest.length === 0 ? {} : { Accept: accept });
      answers[line] = status === 200 && headers.allow === undefined ? text : `${status} ${headers.allow ?? ''}`.trim();
    }
    expect(answers).toEqual(expected);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}

/** An application with the routes of a router, and with `allowedMethods` after them unless that is false. */
export function appOf(router: Router, KoaClass = Koa, isAllowing = true): Koa {
  const app = new KoaClass();
  app.silent = true;
  app.use(router.routes());
  if (isAllowing) app.use(router.allowedMethods());
  return app;
}

/** Declares an `api` block of the vendor `acme` on a router. */
export function declareOn(router: Router, declare: (api: Api) => void, options: Partial<ApiOptions> = {}) {
  return api(router, { vendorString: 'acme', controllers: describing, ...options }, declare);
}

/** Serves one `api` block of the vendor `acme`. */
export function serve(declare: (api: Api) => void, options: Partial<ApiOptions> = {}): Promise<ServedApp> {
  const router = new Router();
  declareOn(router, declare, options);
  return ServedApp.start(router);
}

/** A controller whose actions answer with its name, the action and the parameters: `api/v1/foo#show {"id":"3"}`. */
export function describing(name: string): ControllerClass {
  function describeCall(action: string) {
    return (ctx: Context) => {
      ctx.body = `${name}#${action} ${JSON.stringify(ctx.params)}`;
    };
  }
  return class {
    static {
      for (const action of ['index', 'create', 'new', 'edit', 'show', 'update', 'destroy']) {
        Object.defineProperty(this.prototype, action, { value: describeCall(action) });
      }
    }
  };
}

/** The header of a version of the vendor `acme`. */
export function acme(version: number): string {
  return `application/vnd.acme+json;version=${version}`;
}
