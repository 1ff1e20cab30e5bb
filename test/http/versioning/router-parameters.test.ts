import { Router } from '@koa/router';
import { type Api, api } from '../../../src/http/versioning';
import { ServedApp, acme, appOf, describing } from './serve-api';

const OPTIONS = { vendorString: 'acme', controllers: describing };

/** A router that notes what its handler of the parameter `id` is called with. */
function routerWithParam(declare: (it: Api) => void) {
  const router = new Router();
  const ids: string[] = [];
  router.param('id', (id, _ctx, next) => {
    ids.push(id);
    return next();
  });
  api(router, { ...OPTIONS, formats: ['json', 'csv'] }, declare);
  return { router, ids };
}

function foo(it: Api): void {
  it.version(1, () => it.resources('foo', { only: ['show', 'edit', 'new'] }));
}

describe('a handler of the router for a parameter', () => {
  it.each([
    ['/api/foo/a.b', 'a.b', 'show {"id":"a.b"}'],
    ['/api/foo/a.b.json', 'a.b', 'show {"id":"a.b","format":"json"}'],
    ['/api/foo/a.csv', 'a', 'show {"id":"a","format":"csv"}'],
    ['/api/foo/a%2Fb.c%20d', 'a/b.c d', 'show {"id":"a/b.c d"}'],
    ['/api/foo/new.html', 'new.html', 'show {"id":"new.html"}'],
    ['/api/foo/a.b/edit', 'a.b', 'edit {"id":"a.b"}'],
  ])('is called for %s with the value that the action sees, %s', async (path, id, answer) => {
    const { router, ids } = routerWithParam(foo);
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get(path)).text).toBe(`api/v1/foo#${answer}`);
    expect(ids).toEqual([id]);
  });

  it('is called with that value also in a router that is nested in another', async () => {
    const { router: inner, ids } = routerWithParam(foo);
    const outer = new Router({ prefix: '/outer' });
    outer.use('/:tenant', inner.routes());
    await using app = await ServedApp.start(appOf(outer));
    expect((await app.get('/outer/t/api/foo/a.b')).text).toBe('api/v1/foo#show {"tenant":"t","id":"a.b"}');
    expect(ids).toEqual(['a.b']);
  });
});

describe('a prefix of the router', () => {
  it('may be optional', async () => {
    const router = new Router({ prefix: '{/:lang}' });
    api(router, OPTIONS, foo);
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/api/foo/3')).text).toBe('api/v1/foo#show {"id":"3"}');
    expect((await app.get('/en/api/foo/3')).text).toBe('api/v1/foo#show {"lang":"en","id":"3"}');
    expect((await app.get('/en/us/api/foo/3')).status).toBe(404);
  });

  it('keeps its parameter when another matching path has one of the same name', async () => {
    const router = new Router({ prefix: '/orgs/:id' });
    api(router, OPTIONS, (it) => {
      it.version(1, () => it.resources('rules', { only: ['new', 'show'] }));
      it.version(2, () => it.resources('rules', { only: 'edit' }));
      it.version(3, () => it.resources('rules', { only: [] }, () => it.resources('edit', { only: 'index' })));
    });
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/orgs/7/api/rules/new')).text).toBe('api/v1/rules#new {"id":"7"}');
    expect((await app.get('/orgs/7/api/rules/3/edit', acme(3))).text).toBe(
      'api/v3/edit#index {"id":"7","rule_id":"3"}',
    );
  });
});
