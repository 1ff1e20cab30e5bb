import type { WeirProcess } from './weir-process';
import { hexPort, socketsOf, tcpRows, workersOf } from './worker-processes';

/** The worker that serves a connection to the gRPC port, by the port of the client's end; undefined when there is none. */
export function ownerOf(weir: WeirProcess, clientPort: number): number | undefined {
  const [local, remote] = [hexPort(weir.ports.grpc), hexPort(clientPort)];
  const row = tcpRows().find(([, here, there]) => here?.endsWith(local) === true && there?.endsWith(remote) === true);
  const inode = row?.[9];
  return inode === undefined ? undefined : workersOf(weir).find(({ pid }) => socketsOf(pid).includes(inode))?.pid;
}
