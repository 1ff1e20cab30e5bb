// A longer run of the chaos test: node --require ./test/support/processes/typescript-hook.cjs
// test/integration/kvstore/run-chaos.ts 300
import { DEPLOYMENTS, chaos } from './chaos';

const SECONDS = Number(process.argv[2] ?? 60);
const TIMEOUT = 250;

async function main(): Promise<void> {
  for (const kind of Object.keys(DEPLOYMENTS) as (keyof typeof DEPLOYMENTS)[]) {
    const { logMessages, ...result } = await chaos(kind, SECONDS * 1000, TIMEOUT);
    process.stdout.write(`${kind} ${JSON.stringify({ ...result, logLines: logMessages.length })}\n`);
    if (result.appliedTwice.length > 0 || result.wrongCounts > 0 || result.lost > 0) process.exitCode = 1;
  }
}

void main();
