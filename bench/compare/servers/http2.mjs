import { ANSWER, PATH } from './constant.mjs';

export async function start({ dist }) {
  const { serveGrpc } = (await import(`${dist}/grpc/server/grpc-server.js`)).default;
  const server = await serveGrpc({
    listen: { host: '127.0.0.1', port: 0 },
    limits: { maxConnections: 20_000 },
    unary: new Map([[PATH, (_message, call) => call.reply(ANSWER)]]),
    onInternalError(path, error) {
      throw new Error(`internal error in ${path}`, { cause: error });
    },
  });
  return server.address.port;
}
