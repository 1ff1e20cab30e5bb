// The cost of a request to an API of 10, 100 and 1,000 routes: the CPU time in the router and in koa-route-versions,
// without Koa and without a connection. Usage: npm run bench:versioning [-- --dist <folder of another build of the
// package>], after `npm run build`.
import { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

const require = createRequire(import.meta.url);
const { values } = parseArgs({ options: { dist: { type: 'string', default: 'packages/versioning/dist' } } });
const { api } = require(resolve(values.dist));
const { Router } = require('@koa/router');
const Koa = require('koa');

const ROUTES = [10, 100, 1_000];
/** Of a resource: `index` and `create`, `new`, `show` and `update` and `destroy`, `edit`. */
const ROUTES_OF_RESOURCE = 7;
const REQUESTS = 2_000;
const ROUNDS = 15;

function done(ctx) {
  ctx.body = 'done';
}

class Controller {
  static {
    for (const action of ['index', 'create', 'new', 'edit', 'show', 'update', 'destroy']) this.prototype[action] = done;
  }
}

/** The routes as an API in two versions, and as plain routes. */
const DECLARE = {
  versioned: (router, resources) =>
    api(router, { vendorString: 'acme', controllers: () => Controller }, (it) => {
      it.version(1, () => {
        it.cache({ as: 'all' }, () => resources.forEach((name) => it.resources(name)));
      });
      it.version(2, () => it.inherit({ from: 'all' }));
    }),
  plain: (router, resources) => {
    for (const name of resources) {
      router.get(`/api/${name}`, done).post(`/api/${name}`, done).get(`/api/${name}/new`, done);
      router.get(`/api/${name}/:id`, done).put(`/api/${name}/:id`, done).delete(`/api/${name}/:id`, done);
      router.get(`/api/${name}/:id/edit`, done);
    }
  },
};

const app = new Koa();

function requester(declare, routes) {
  const resources = Array.from({ length: Math.ceil(routes / ROUTES_OF_RESOURCE) }, (_, index) => `resource${index}`);
  const router = new Router();
  declare(router, resources);
  const handle = router.routes();
  const paths = resources.map((name) => `/api/${name}/3`);
  return async (index) => {
    const request = new IncomingMessage(null);
    Object.assign(request, { method: 'GET', url: paths[index % paths.length] });
    request.headers.accept = 'application/vnd.acme+json;version=2';
    const ctx = app.createContext(request, new ServerResponse(request));
    await handle(ctx, () => Promise.resolve());
    if (ctx.body !== 'done') throw new Error(`${request.url} has no answer`);
  };
}

/** Microseconds of CPU time per request. */
async function measure(request) {
  const before = process.cpuUsage();
  for (let index = 0; index < REQUESTS; index += 1) await request(index);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / REQUESTS;
}

const cases = ROUTES.flatMap((routes) =>
  Object.entries(DECLARE).map(([kind, declare]) => ({
    routes,
    kind,
    request: requester(declare, routes),
    best: Infinity,
  })),
);
for (let round = 0; round < ROUNDS; round += 1) {
  for (const each of cases) each.best = Math.min(each.best, await measure(each.request));
}
console.table(
  ROUTES.map((routes) => {
    const [versioned, plain] = ['versioned', 'plain'].map(
      (kind) => cases.find((each) => each.routes === routes && each.kind === kind).best,
    );
    return {
      routes,
      'versioned, µs': +versioned.toFixed(1),
      'plain, µs': +plain.toFixed(1),
      ratio: +(versioned / plain).toFixed(2),
    };
  }),
);
