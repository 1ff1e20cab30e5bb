import { ANSWER, PATH } from './constant.mjs';

export async function start({ dist }) {
  const { serve } = (await import(`${dist}/grpc/server/serve.js`)).default;
  const server = await serve({
    listen: { host: '127.0.0.1', port: 0 },
    limits: { maxConnections: 20_000 },
    unary: new Map([[PATH, (_message, call) => call.reply(ANSWER)]]),
    threw(path, error) {
      throw new Error(`a handler threw: ${path}`, { cause: error });
    },
  });
  return server.address.port;
}
