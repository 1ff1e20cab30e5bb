// A common implementation: Koa, JSON.parse, and a constant response.
import Koa from 'koa';
import { ANSWER } from './answer.mjs';

export async function start() {
  const app = new Koa();
  app.use(async (ctx) => {
    let text = '';
    for await (const piece of ctx.req) text += piece;
    JSON.parse(text);
    ctx.type = 'application/json';
    ctx.body = ANSWER;
  });
  return new Promise((resolve) => {
    const server = app.listen(0, '127.0.0.1', () => resolve({ port: server.address().port }));
  });
}
