// The server on grpc-js of bench/grpc-server, which answers every call with OK. Prints its port.
import { start } from '../../bench/grpc-server/servers/grpc-js.mjs';

void start().then((port: number) => process.stdout.write(`${port}\n`));
