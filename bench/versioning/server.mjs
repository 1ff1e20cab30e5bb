// One application of the benchmark, as a process: prints its port, and its CPU time in microseconds for each message.
import { createRequire } from 'node:module';
import { Router } from '@koa/router';
import Koa from 'koa';

const { api } = createRequire(import.meta.url)('../../dist/http/versioning/index.js');

class Controller {
  show(ctx) {
    return { id: ctx.params.id };
  }
}
for (const action of ['index', 'create', 'new', 'edit', 'update', 'destroy']) {
  Controller.prototype[action] = () => action;
}

/** Routes of as many resources, each with seven, in one version or spread over several. */
function versioned(router, resources, versions) {
  api(router, { vendorString: 'acme', controllers: () => Controller }, (declaration) => {
    for (let version = 1; version <= versions; version += 1) {
      declaration.version(version, () => {
        for (let index = 0; index < resources / versions; index += 1) declaration.resources(`resource-${index}`);
      });
    }
  });
}

function other(ctx) {
  ctx.body = 'other';
}

/** The same paths without versions, each method as a route of its own. */
function plain(router, resources) {
  for (let index = 0; index < resources; index += 1) {
    const path = `/api/resource-${index}`;
    router.get(path, other).post(path, other).get(`${path}/new`, other).get(`${path}/:id/edit`, other);
    router.get(`${path}/:id`, (ctx) => void (ctx.body = { id: ctx.params.id }));
    router.put(`${path}/:id`, other).delete(`${path}/:id`, other);
  }
}

const [, , kind, resources, versions] = process.argv;
const app = new Koa();
if (kind === 'koa') app.use((ctx) => void (ctx.body = { id: '3' }));
else {
  const router = new Router();
  if (kind === 'plain') plain(router, Number(resources));
  else versioned(router, Number(resources), Number(versions));
  app.use(router.routes());
}
const server = app.listen(0, '127.0.0.1', () => process.send(server.address().port));
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send(user + system);
});
