import { Router } from '@koa/router';
import type { Context } from 'koa';
import { type ControllerClass } from '../../packages/versioning/src';
import { ServedApp, acme, appOf, declareOn, serve } from './serve-api';

/** Serves one resource whose controller is this class, in version 4. */
function serveController(controller: ControllerClass, only: 'index' | readonly ('index' | 'show')[] = 'index') {
  return serve((it) => it.version(4, () => it.resources('foo', { only })), { controllers: () => controller });
}

/** Headers, with `A` for the vendor's type, and the version that they select, of 1 to 3; 406: none. */
const CHOICES: Readonly<Record<string, number>> = {
  '*/*': 1,
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8': 1,
  'garbage,,': 1,
  ',,': 1,
  'A+json': 1,
  A: 1,
  'A+json ; version = 2': 2,
  'A\t+\tjson;version=2': 2,
  'APPLICATION/VND.ACME+JSON;VERSION=2': 2,
  'A+json;version="2"': 2,
  'A+json;a="x,y;version=3";version=2': 2,
  'A+json;version=': 1,
  'A+json;version=2;q=0.5,A+json;version=3;q=0.50': 2,
  '*/*, A+json;version=2;q=0.1': 2,
  'application/vnd.other+json;version=3, A+json;version=2;q=0.1': 2,
  'A+json;version=9, A+json;version=2;q=0.5': 2,
  'A+xml;version=2, A+json;version=3;q=0.5': 3,
  'A+json;version=9, */*;q=0.1': 406,
  'A+json;version=02': 406,
  'A+xml;version=2': 406,
  'A+json;version=2;q=0': 406,
  'A+json;version=2;q=0, */*': 1,
  'application/vnd.acme.books+json;version=1': 406,
};

describe('the Accept header', () => {
  let app: ServedApp;
  beforeAll(async () => {
    app = await serve((it) => [1, 2, 3].forEach((version) => it.version(version, () => it.resources('foo'))));
  });
  afterAll(() => app[Symbol.asyncDispose]());

  async function versionFor(header: string): Promise<number> {
    const { status, text } = await app.get('/api/foo', header.replaceAll(/\bA\b/g, 'application/vnd.acme'));
    return status === 200 ? Number(/^api\/v(\d)/.exec(text)?.[1]) : status;
  }

  it.each(Object.entries(CHOICES))('selects the version for %s', async (header, version) => {
    expect(await versionFor(header)).toBe(version);
  });

  it('selects the default version when it is missing or empty', async () => {
    expect([(await app.get('/api/foo')).text, await versionFor('')]).toEqual(['api/v1/foo#index {}', 1]);
  });

  it('is read up to 64 types, in time that grows no faster than its length', async () => {
    const wanted = 'A+json;version=2';
    expect([await versionFor('a/b,'.repeat(63) + wanted), await versionFor('a/b,'.repeat(64) + wanted)]).toEqual([
      2, 1,
    ]);
    // A quadratic reader needs minutes for a header of this length.
    const spaces = ' '.repeat(1_000_000);
    expect(await versionFor(`A${spaces}+json;version${spaces}=${spaces}2`)).toBe(2);
  });
});

describe('an answer', () => {
  it('in JSON has the media type of the vendor with the version', async () => {
    const answers: Readonly<Record<string, (ctx: Context) => unknown>> = {
      object: () => ({ a: 1 }),
      text: () => 'text',
      typed: (ctx) => ((ctx.type = 'application/problem+json'), '{}'),
      bytes: (ctx) => void ((ctx.type = 'json'), (ctx.body = Buffer.from('[]'))),
      null: () => null,
      nothing: () => undefined,
    };
    class Answering {
      show(ctx: Context) {
        return answers[ctx.params.id]!(ctx);
      }
    }
    await using app = await serveController(Answering, ['show']);
    const vendorType = 'application/vnd.acme+json; version=4';
    const found = await Promise.all(Object.keys(answers).map((id) => app.get(`/api/foo/${id}`)));
    expect(found.map(({ status, headers, text }) => [status, headers['content-type'], text])).toEqual([
      [200, vendorType, '{"a":1}'],
      [200, 'text/plain; charset=utf-8', 'text'],
      [200, 'application/problem+json', '{}'],
      [200, vendorType, '[]'],
      [204, undefined, ''],
      [404, 'text/plain; charset=utf-8', 'Not Found'],
    ]);
  });

  it('may have another format that is declared, by the media type or the URL', async () => {
    class Exporting {
      show(ctx: Context) {
        const format = String(ctx.state.apiFormat);
        ctx.type = `application/${format}`;
        ctx.body = format;
      }
    }
    await using app = await serve((it) => it.version(4, () => it.resources('foo', { only: 'show' })), {
      controllers: () => Exporting,
      formats: ['json', 'xml'],
    });
    const requests = [
      ['/api/foo/1', 'application/vnd.acme+xml;version=4'],
      ['/api/foo/1', 'application/vnd.acme + XML'],
      ['/api/foo/1.json', 'application/vnd.acme+xml'],
      ['/api/foo/1.xml', '*/*'],
      ['/api/foo/1', acme(4)],
    ] as const;
    const answers = await Promise.all(requests.map(([path, accept]) => app.get(path, accept)));
    expect(answers.map(({ headers, text }) => [text, headers['content-type']])).toEqual([
      ['xml', 'application/vnd.acme+xml; version=4'],
      ['xml', 'application/vnd.acme+xml; version=4'],
      ['json', 'application/vnd.acme+json; version=4'],
      ['xml', 'application/xml'],
      ['json', 'application/vnd.acme+json; version=4'],
    ]);
    const none = await app.get('/api/foo/1', 'application/vnd.acme+csv');
    const types = ['application/vnd.acme+json; version=4', 'application/vnd.acme+xml; version=4'];
    expect([none.status, JSON.parse(none.text)]).toMatchObject([406, { error: { types } }]);
  });

  it('to another method follows the methods of the version', async () => {
    await using app = await serve((it) => {
      it.version(1, () => it.resources('foo', { only: ['index', 'create', 'show'] }));
      it.version(2, () => it.resources('foo', { only: ['index', 'show', 'update'] }));
    });
    await app.expectAnswers({
      'OPTIONS /api/foo 1': '200 HEAD, GET, POST',
      'OPTIONS /api/foo 2': '200 HEAD, GET',
      'POST /api/foo 2': '405 HEAD, GET',
      'DELETE /api/foo/1 1': '405 HEAD, GET',
      'DELETE /api/foo/1 2': '405 HEAD, GET, PUT',
      'OPTIONS /api/foo/1/edit 2': '404',
      'HEAD /api/foo 1': '',
    });
    expect((await app.send('HEAD', '/api/foo')).headers['content-length']).toBe('19');
    expect((await app.send('TRACE', '/api/foo')).status).toBe(501);
  });
});

describe('Vary', () => {
  it('has Accept whatever the status is, and keeps other fields', async () => {
    class Varying {
      index(ctx: Context) {
        ctx.vary('Origin');
        return {};
      }
      show(ctx: Context) {
        ctx.throw(410, 'gone');
      }
    }
    await using app = await serveController(Varying, ['index', 'show']);
    const answers = await Promise.all([
      app.get('/api/foo'),
      app.get('/api/foo/1'),
      app.get('/api/foo/1', acme(2)),
      app.send('DELETE', '/api/foo/1'),
    ]);
    expect(answers.map(({ status, headers }) => [status, headers.vary])).toEqual([
      [200, 'Accept, Origin'],
      [410, 'Accept'],
      [406, 'Accept'],
      [405, 'Accept'],
    ]);
  });
});

it('an action runs on a new instance with the context; it may be inherited, asynchronous, and pass the request on', async () => {
  const instances = new Set<object>();
  class Base {
    readonly #path: string;
    constructor(ctx: Context) {
      this.#path = ctx.path;
    }
    async index(ctx: Context, next: () => Promise<unknown>) {
      instances.add(this);
      await next();
      ctx.body = { ...Object(ctx.body), path: this.#path, version: ctx.state.apiVersion as unknown };
    }
  }
  class Derived extends Base {}
  const router = new Router();
  declareOn(router, (it) => it.version(4, () => it.resources('foo', { only: 'index' })), {
    controllers: () => Derived,
  });
  await using app = await ServedApp.start(
    router,
    appOf(router).use((ctx) => void (ctx.body = { next: true })),
  );
  await app.get('/api/foo');
  expect((await app.get('/api/foo')).text).toBe('{"next":true,"path":"/api/foo","version":4}');
  expect(instances.size).toBe(2);
});
